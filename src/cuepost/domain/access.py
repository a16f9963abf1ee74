"""Accounts, API keys, the roles of members, and what a caller may do."""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cuepost.domain.errors import (
    AccountErasing,
    AccountMoved,
    AccountMoving,
    MissingScope,
    NotFound,
    WebhooksNotEnabled,
    WrongKindOfKey,
)

TOKEN_PREFIX = "cpk_"
TOKEN_SECRET_BYTES = 32
# Shorter than a key's id, so that text between the prefix and an underscore can only be a cell.
CELL = re.compile(r"[a-z0-9]{1,16}")
_TOKEN = re.compile(rf"cpk_(?:{CELL.pattern}_)?([0-9a-f]{{32}})([A-Za-z0-9_-]{{43}})\Z")


class Scope(StrEnum):
    WEBHOOKS_MANAGE = "webhooks:manage"
    WEBHOOKS_READ = "webhooks:read"
    PROJECTS_READ = "projects:read"
    PROJECTS_WRITE = "projects:write"
    MILESTONES_REPORT = "milestones:report"
    ACCOUNTS_MANAGE = "accounts:manage"
    ACCOUNTS_READ = "accounts:read"
    PORTAL_CREATE = "portal:create"
    MEMBERS_READ = "members:read"
    MEMBERS_MANAGE = "members:manage"


SERVICE_SCOPES = frozenset({Scope.MILESTONES_REPORT})
OPERATOR_SCOPES = frozenset({Scope.ACCOUNTS_MANAGE, Scope.ACCOUNTS_READ, Scope.PORTAL_CREATE})
ACCOUNT_SCOPES = frozenset(Scope) - SERVICE_SCOPES - OPERATOR_SCOPES
# What a new key may do unless its scopes are chosen: a leaked key must not let people in.
USUAL_SCOPES = ACCOUNT_SCOPES - {Scope.MEMBERS_READ, Scope.MEMBERS_MANAGE}
_IMPLIED = {
    Scope.WEBHOOKS_READ: Scope.WEBHOOKS_MANAGE,
    Scope.ACCOUNTS_READ: Scope.ACCOUNTS_MANAGE,
    Scope.MEMBERS_READ: Scope.MEMBERS_MANAGE,
}


class KeyKind(StrEnum):
    """Whom a key acts for. Keys of the pipeline and of the operator belong to no account."""

    ACCOUNT = "account"
    SERVICE = "service"
    OPERATOR = "operator"


_NAMES = {
    KeyKind.ACCOUNT: "an account key",
    KeyKind.SERVICE: "a service key",
    KeyKind.OPERATOR: "an operator key",
}


def kind_of(scopes: frozenset[Scope]) -> KeyKind:
    """No key has scopes of two kinds."""
    if scopes & OPERATOR_SCOPES:
        return KeyKind.OPERATOR
    return KeyKind.SERVICE if scopes & SERVICE_SCOPES else KeyKind.ACCOUNT


class Role(StrEnum):
    """What a member of an account may do; each role may do all that the next one may."""

    OWNER = "owner"
    DEVELOPER = "developer"
    VIEWER = "viewer"

    @property
    def scopes(self) -> frozenset[Scope]:
        return SCOPES_OF[self]

    def is_more_than(self, other: "Role") -> bool:
        return self.scopes > other.scopes


# `members:manage` covers API keys as well: a key works on after the member who made it has left.
SCOPES_OF: Mapping[Role, frozenset[Scope]] = {
    Role.OWNER: ACCOUNT_SCOPES,
    Role.DEVELOPER: ACCOUNT_SCOPES - {Scope.MEMBERS_MANAGE},
    Role.VIEWER: frozenset({Scope.WEBHOOKS_READ, Scope.PROJECTS_READ, Scope.MEMBERS_READ}),
}


class AccountState(StrEnum):
    """The state of an account's move to another database; only a live account can be changed."""

    LIVE = "live"
    LEAVING = "leaving"
    ARRIVING = "arriving"
    MOVED = "moved"

    def require_live(self) -> None:
        if self is AccountState.MOVED:
            raise AccountMoved
        if self is not AccountState.LIVE:
            raise AccountMoving

    def require_readable(self) -> None:
        """An account that is leaving does not change, so it can still be read."""
        if self is not AccountState.LEAVING:
            self.require_live()


@dataclass(frozen=True, slots=True)
class Account:
    """`external_id` is what the operator's own product calls it; no two accounts share one.

    Once `erasing_since` is set, the account and all its rows are being removed.
    """

    id: UUID
    name: str
    webhooks_enabled: bool
    created_at: datetime
    state: AccountState = AccountState.LIVE
    external_id: str | None = None
    erasing_since: datetime | None = None

    def require_live(self) -> None:
        self.state.require_live()
        if self.erasing_since is not None:
            raise AccountErasing


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key of an account, or, without an account, a service key or an operator key."""

    id: UUID
    account_id: UUID | None
    name: str
    digest: bytes
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    def accepts(self, token: str, now: datetime) -> bool:
        return hmac.compare_digest(self.digest, digest(token)) and self.is_usable(now)

    def is_usable(self, now: datetime) -> bool:
        expired = self.expires_at is not None and self.expires_at <= now
        return not expired and self.revoked_at is None


def compose_token(key_id: UUID, secret: bytes, cell: str = "") -> str:
    """The name of the cell comes first and is readable, so that a proxy can route by it."""
    place = f"{cell}_" if cell else ""
    return TOKEN_PREFIX + place + key_id.hex + urlsafe_b64encode(secret).decode().rstrip("=")


def key_id_in(token: str) -> UUID | None:
    match = _TOKEN.match(token)
    return UUID(hex=match[1]) if match else None


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


class Interface(StrEnum):
    """The interface that a call came through."""

    REST = "rest"
    CLI = "cli"
    PAGES = "pages"
    MCP = "mcp"


@dataclass(frozen=True, slots=True)
class Caller:
    """The key, user or operator that makes a call, with its scopes and its address.

    `id` is the key's or the user's; an operator at the command line has none. `name` is what the
    audit trail calls the caller: a user's e-mail, the name of a key. Only a user has a `role`.
    """

    interface: Interface
    actor: str
    account_id: UUID | None
    scopes: frozenset[Scope]
    webhooks_enabled: bool = False
    address: str | None = None
    id: UUID | None = None
    name: str | None = None
    role: Role | None = None

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or _IMPLIED.get(scope) in self.scopes

    def require(self, scope: Scope) -> None:
        if not self.may(scope):
            self._require_kind(kind_of(frozenset({scope})))
            message = f"This key lacks the scope {scope}."
            if self.role is not None:
                message = f"As a {self.role} you may not do that; ask an owner of the account."
            raise MissingScope(message, scope=scope)

    def _require_kind(self, needed: KeyKind) -> None:
        """Operator keys and the other keys can do nothing in each other's place."""
        own = kind_of(self.scopes)
        if needed is not own and KeyKind.OPERATOR in (needed, own):
            raise WrongKindOfKey(f"This call takes {_NAMES[needed]}, and this is {_NAMES[own]}.")

    def require_webhooks(self, scope: Scope) -> UUID:
        """Return the caller's account, if the caller may use webhooks in it."""
        self.require(scope)
        account_id = self.account
        if not self.webhooks_enabled:
            raise WebhooksNotEnabled
        return account_id

    @property
    def account(self) -> UUID:
        """The caller's account; a service key has none, so nothing is found for it."""
        if self.account_id is None:
            raise NotFound
        return self.account_id
