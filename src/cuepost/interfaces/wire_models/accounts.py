"""Accounts and their keys, as an operator sees them."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict

from cuepost.application.access import NewKey
from cuepost.application.manage_accounts import AccountChange
from cuepost.domain.access import ACCOUNT_SCOPES, USUAL_SCOPES, Scope
from cuepost.domain.access import Account as StoredAccount
from cuepost.domain.access import ApiKey as StoredKey
from cuepost.domain.account_reference import EXTERNAL_ID, search_key
from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.instants import to_text
from cuepost.interfaces.wire_models.paging import PageQuery, cursor_of
from cuepost.interfaces.wire_models.shapes import (
    LINE,
    Moment,
    Name,
    Request,
    ResponseModel,
    Time,
    given,
    moment,
)
from cuepost.ports.records import AccountSearch, Page, SearchedBy, searched_text

ExternalId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=EXTERNAL_ID,
        description="The operator's own reference; no two accounts have the same.",
        examples=["cust_42"],
    ),
]
AccountScope = Annotated[
    str,
    Meta(
        title="AccountScope",
        max_length=100,
        pattern=LINE,
        extra_json_schema={"enum": sorted(ACCOUNT_SCOPES)},
    ),
]
AccountScopes = Annotated[
    list[AccountScope], Meta(max_length=50, extra_json_schema={"minItems": 1})
]
SearchCursor = Annotated[
    str,
    Meta(
        max_length=1_500,
        description="`nextCursor` of the previous page.",
        extra_json_schema={"pattern": "^[A-Za-z0-9_-]+$"},
    ),
]
NamePrefix = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=LINE,
        description="How the name begins, in capital or small letters.",
    ),
]
ExternalIdPrefix = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=EXTERNAL_ID,
        description="How the external id begins.",
    ),
]
_ID_BYTES = 16


class WebhooksAccess(StrEnum):
    OPEN = "open"
    CLOSED = "closed"


class AccountStanding(StrEnum):
    """An account that is not `live` cannot be changed: it moves, or it is being erased."""

    LIVE = "live"
    LEAVING = "leaving"
    ARRIVING = "arriving"
    MOVED = "moved"
    ERASING = "erasing"


class CreateAccount(Request, frozen=True):
    """Without `webhooksAccess` it is as the setting `CUEPOST_WEBHOOKS_ACCESS` says."""

    name: Name
    external_id: ExternalId | UnsetType | None = UNSET
    webhooks_access: WebhooksAccess | UnsetType | None = UNSET

    @property
    def webhooks_enabled(self) -> bool | None:
        access = given(self.webhooks_access)
        return None if access is None else access is WebhooksAccess.OPEN


class UpdateAccount(Request, frozen=True):
    """`externalId: null` removes it."""

    name: Name | UnsetType = UNSET
    external_id: ExternalId | UnsetType | None = UNSET

    def change(self) -> AccountChange:
        return AccountChange(
            name=given(self.name),
            sets_external_id=self.external_id is not UNSET,
            external_id=given(self.external_id),
        )


class Account(ResponseModel, frozen=True):
    id: UUID
    external_id: str | None
    name: str
    webhooks_access: WebhooksAccess
    state: AccountStanding
    created_at: Moment

    @classmethod
    def of(cls, account: StoredAccount) -> "Account":
        is_erasing = account.erasing_since is not None
        return cls(
            id=account.id,
            external_id=account.external_id,
            name=account.name,
            webhooks_access=(
                WebhooksAccess.OPEN if account.webhooks_enabled else WebhooksAccess.CLOSED
            ),
            state=AccountStanding.ERASING if is_erasing else AccountStanding(account.state),
            created_at=to_text(account.created_at),
        )


class AccountList(ResponseModel, frozen=True):
    data: list[Account]
    next_cursor: str | None


class AccountQuery(PageQuery, frozen=True):
    """All accounts, newest first, or a search, in the order of what is searched by."""

    cursor: SearchCursor | UnsetType = UNSET
    name_prefix: NamePrefix | UnsetType = UNSET
    external_id_prefix: ExternalIdPrefix | UnsetType = UNSET

    def wanted(self) -> Page | AccountSearch:
        cursor, searches = given(self.cursor), self._searches()
        if len(searches) > 1:
            raise Invalid(
                FieldError("externalIdPrefix", "two_searches", "Search by one of the two.")
            )
        for by, prefix in searches.items():
            after = None if cursor is None else _place_in(cursor)
            return AccountSearch(by, prefix, self.limit + 1, after)
        return self.page()

    def cut(self, found: list[StoredAccount]) -> AccountList:
        shown = found[: self.limit]
        cursor = None
        if len(found) > self.limit:
            [by] = self._searches() or [None]
            cursor = _cursor_behind(shown[-1], by)
        return AccountList([Account.of(each) for each in shown], cursor)

    def _searches(self) -> dict[SearchedBy, str]:
        name, external_id = given(self.name_prefix), given(self.external_id_prefix)
        searches = {
            SearchedBy.NAME: None if name is None else search_key(name),
            SearchedBy.EXTERNAL_ID: external_id,
        }
        return {by: prefix for by, prefix in searches.items() if prefix is not None}


class CreateApiKey(Request, frozen=True):
    """Without `scopes` the key may do everything except manage the members of the account."""

    name: Name
    scopes: AccountScopes | UnsetType | None = UNSET
    expires_at: Time | UnsetType | None = UNSET

    def chosen_scopes(self) -> frozenset[Scope]:
        known = {scope.value: scope for scope in Scope}
        names = given(self.scopes)
        if names is None:
            return USUAL_SCOPES
        if not known.keys() >= set(names):
            raise Invalid(
                FieldError(
                    "scopes",
                    "scope_not_possible",
                    f"Choose from {', '.join(sorted(ACCOUNT_SCOPES))}.",
                )
            )
        return frozenset(known[name] for name in names)


class ApiKey(ResponseModel, frozen=True):
    id: UUID
    account_id: UUID | None
    name: str
    scopes: list[Scope]
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    last_used_at: Moment | None

    @classmethod
    def of(cls, key: StoredKey) -> "ApiKey":
        return cls(
            id=key.id,
            account_id=key.account_id,
            name=key.name,
            scopes=sorted(key.scopes),
            created_at=to_text(key.created_at),
            expires_at=moment(key.expires_at),
            revoked_at=moment(key.revoked_at),
            last_used_at=moment(key.last_used_at),
        )


class CreatedApiKey(ApiKey, frozen=True):
    """The key with its `token`, which is shown this once."""

    token: str

    @classmethod
    def made(cls, new: NewKey) -> "CreatedApiKey":
        return cls(**asdict(ApiKey.of(new.key)), token=new.token)

    def __repr__(self) -> str:
        return f"CreatedApiKey({self.id})"


class ApiKeyList(ResponseModel, frozen=True):
    data: list[ApiKey]
    next_cursor: str | None


def _cursor_behind(account: StoredAccount, by: SearchedBy | None) -> str:
    """In a search it holds the text as well: the account may have another one by then."""
    if by is None:
        return cursor_of(account.id)
    text = searched_text(by, account)
    return urlsafe_b64encode(account.id.bytes + text.encode()).decode().rstrip("=")


def _place_in(cursor: str) -> tuple[str, UUID]:
    try:
        content = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        text, account_id = content[_ID_BYTES:].decode(), UUID(bytes=content[:_ID_BYTES])
    except (UnicodeError, binascii.Error, ValueError):
        text, account_id = "", None
    if account_id is None or "\0" in text:
        raise Invalid(
            FieldError("cursor", "invalid_cursor", "Give the nextCursor of an earlier page.")
        )
    return text, account_id
