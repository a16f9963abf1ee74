"""Keys and callers: the token's form, when a key is accepted, and what a scope allows."""

import hmac
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.domain import access
from cuepost.domain.access import (
    ACCOUNT_SCOPES,
    OPERATOR_SCOPES,
    SCOPES_OF,
    SERVICE_SCOPES,
    TOKEN_SECRET_BYTES,
    USUAL_SCOPES,
    Account,
    AccountState,
    ApiKey,
    Caller,
    Interface,
    KeyKind,
    Role,
    Scope,
    compose_token,
    digest,
    key_id_in,
    kind_of,
)
from cuepost.domain.errors import (
    AccountErasing,
    AccountMoved,
    AccountMoving,
    MissingScope,
    NotFound,
    Refused,
    WebhooksNotEnabled,
    WrongKindOfKey,
)
from cuepost.testing import START, SequentialIds

KEY_ID = UUID("0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90")
TOKEN = compose_token(KEY_ID, bytes(range(TOKEN_SECRET_BYTES)))
KEY = ApiKey(KEY_ID, SequentialIds()(START), "CI", digest(TOKEN), ACCOUNT_SCOPES, START)
TICK = timedelta(milliseconds=1)


def caller(*scopes: Scope, account_id: UUID | None = KEY.account_id, open_: bool = True) -> Caller:
    return Caller(Interface.REST, "key:test", account_id, frozenset(scopes), webhooks_enabled=open_)


def test_a_token_is_the_prefix_the_key_id_and_the_secret() -> None:
    assert TOKEN == (
        "cpk_0198c0de5a3b7d219c4e3f6a5b7c8d90AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
    )


@given(st.uuids(), st.binary(min_size=32, max_size=32))
def test_the_key_id_can_be_read_from_every_token(key_id: UUID, secret: bytes) -> None:
    assert key_id_in(compose_token(key_id, secret)) == key_id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cpk_",
        TOKEN[:-1],
        TOKEN + "A",
        TOKEN + "\n",
        " " + TOKEN,
        TOKEN.upper(),
        TOKEN.replace("cpk_", "whsec_"),
        TOKEN.replace("A", "é"),
        TOKEN.replace("0198", "０198"),
    ],
)
def test_what_does_not_look_like_a_token_names_no_key(text: str) -> None:
    assert key_id_in(text) is None


@given(st.text())
def test_any_text_at_all_can_be_asked_for_its_key(text: str) -> None:
    assert key_id_in(text) is None


def test_a_key_accepts_its_own_token_alone() -> None:
    other = compose_token(KEY_ID, bytes(TOKEN_SECRET_BYTES))
    assert KEY.accepts(TOKEN, START)
    assert not KEY.accepts(other, START)


@pytest.mark.parametrize(
    ("expires_at", "accepted"),
    [(None, True), (START + TICK, True), (START, False), (START - TICK, False)],
)
def test_a_key_expires_at_its_instant(expires_at: datetime | None, accepted: bool) -> None:
    assert replace(KEY, expires_at=expires_at).accepts(TOKEN, START) is accepted


def test_a_revoked_key_accepts_nothing() -> None:
    assert not replace(KEY, revoked_at=START).accepts(TOKEN, START)


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(access, "hmac", type("Watched", (), {"compare_digest": watched}))
    assert KEY.accepts(TOKEN, START)
    assert not replace(KEY, revoked_at=START).accepts("cpk_other", START)
    assert compared == [(KEY.digest, digest(TOKEN)), (KEY.digest, digest("cpk_other"))]


def test_a_key_holds_a_digest_and_never_the_token() -> None:
    assert len(KEY.digest) == 32
    assert TOKEN.removeprefix("cpk_")[32:] not in repr(KEY)


def test_keys_of_two_kinds_share_no_scope() -> None:
    assert sorted(ACCOUNT_SCOPES) == [
        "members:manage",
        "members:read",
        "projects:read",
        "projects:write",
        "webhooks:manage",
        "webhooks:read",
    ]
    assert sorted(SERVICE_SCOPES) == ["milestones:report"]
    assert sorted(OPERATOR_SCOPES) == ["accounts:manage", "accounts:read", "portal:create"]
    assert not ACCOUNT_SCOPES & SERVICE_SCOPES
    assert frozenset(Scope) == ACCOUNT_SCOPES | SERVICE_SCOPES | OPERATOR_SCOPES


@pytest.mark.parametrize(
    ("scopes", "kind"),
    [
        (ACCOUNT_SCOPES, KeyKind.ACCOUNT),
        (SERVICE_SCOPES, KeyKind.SERVICE),
        (OPERATOR_SCOPES, KeyKind.OPERATOR),
    ],
)
def test_each_scope_says_the_kind_of_its_key(scopes: frozenset[Scope], kind: KeyKind) -> None:
    assert {kind_of(frozenset({each})) for each in scopes} == {kind}


@pytest.mark.parametrize(
    ("held", "needed", "message"),
    [
        (
            Scope.WEBHOOKS_MANAGE,
            Scope.ACCOUNTS_READ,
            "This call takes an operator key, and this is an account key.",
        ),
        (
            Scope.MILESTONES_REPORT,
            Scope.ACCOUNTS_MANAGE,
            "This call takes an operator key, and this is a service key.",
        ),
        (
            Scope.ACCOUNTS_MANAGE,
            Scope.WEBHOOKS_READ,
            "This call takes an account key, and this is an operator key.",
        ),
        (
            Scope.PORTAL_CREATE,
            Scope.MILESTONES_REPORT,
            "This call takes a service key, and this is an operator key.",
        ),
    ],
)
def test_an_operator_key_and_another_key_are_told_apart(
    held: Scope, needed: Scope, message: str
) -> None:
    with pytest.raises(WrongKindOfKey) as refused:
        caller(held).require(needed)
    assert str(refused.value) == message


def test_a_key_lets_people_in_only_if_it_was_made_for_that() -> None:
    assert sorted(ACCOUNT_SCOPES - USUAL_SCOPES) == ["members:manage", "members:read"]


def test_what_each_role_may_do() -> None:
    assert {role: sorted(scopes) for role, scopes in SCOPES_OF.items()} == {
        Role.OWNER: sorted(ACCOUNT_SCOPES),
        Role.DEVELOPER: [
            "members:read",
            "projects:read",
            "projects:write",
            "webhooks:manage",
            "webhooks:read",
        ],
        Role.VIEWER: ["members:read", "projects:read", "webhooks:read"],
    }


def test_each_role_may_do_more_than_those_after_it() -> None:
    more = [(one, other) for one in Role for other in Role if one.is_more_than(other)]
    assert more == [
        (Role.OWNER, Role.DEVELOPER),
        (Role.OWNER, Role.VIEWER),
        (Role.DEVELOPER, Role.VIEWER),
    ]


def test_a_member_is_told_that_the_role_does_not_allow_it() -> None:
    viewer = replace(caller(*Role.VIEWER.scopes), role=Role.VIEWER)
    with pytest.raises(MissingScope) as refused:
        viewer.require(Scope.WEBHOOKS_MANAGE)
    assert str(refused.value) == ("As a viewer you may not do that; ask an owner of the account.")


@pytest.mark.parametrize("held", Scope)
@pytest.mark.parametrize("needed", Scope)
def test_a_scope_allows_itself_and_managing_allows_reading(held: Scope, needed: Scope) -> None:
    implied = {
        (Scope.WEBHOOKS_MANAGE, Scope.WEBHOOKS_READ),
        (Scope.ACCOUNTS_MANAGE, Scope.ACCOUNTS_READ),
        (Scope.MEMBERS_MANAGE, Scope.MEMBERS_READ),
    }
    if held is needed or (held, needed) in implied:
        caller(held).require(needed)
    elif (held in OPERATOR_SCOPES) is not (needed in OPERATOR_SCOPES):
        with pytest.raises(WrongKindOfKey):
            caller(held).require(needed)
    else:
        with pytest.raises(MissingScope) as refused:
            caller(held).require(needed)
        assert refused.value.details == {"scope": needed}
        assert str(refused.value) == f"This key lacks the scope {needed}."


def test_an_open_account_may_use_webhooks() -> None:
    assert caller(Scope.WEBHOOKS_READ).require_webhooks(Scope.WEBHOOKS_READ) == KEY.account_id


def test_an_account_that_was_not_opened_may_not_use_webhooks() -> None:
    with pytest.raises(WebhooksNotEnabled):
        caller(Scope.WEBHOOKS_READ, open_=False).require_webhooks(Scope.WEBHOOKS_READ)


def test_a_missing_scope_is_told_before_a_closed_account() -> None:
    with pytest.raises(MissingScope):
        caller(Scope.PROJECTS_READ, open_=False).require_webhooks(Scope.WEBHOOKS_READ)


def test_a_service_key_acts_in_no_account_and_finds_nothing() -> None:
    with pytest.raises(NotFound):
        _ = caller(Scope.WEBHOOKS_READ, account_id=None).account


def test_a_token_may_carry_the_name_of_a_cell_in_clear() -> None:
    token = compose_token(KEY.id, bytes(range(32)), "eu1")
    assert token == f"cpk_eu1_{KEY.id.hex}AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
    assert key_id_in(token) == KEY.id


@pytest.mark.parametrize("cell", ["EU1", "e-1", "a" * 17, "eu1_b", ""])
def test_a_token_with_something_else_in_that_place_is_none(cell: str) -> None:
    plain = compose_token(KEY.id, bytes(32)).removeprefix("cpk_")
    assert key_id_in(f"cpk_{cell}_{plain}") is None


@pytest.mark.parametrize(
    ("state", "to_change", "to_read"),
    [
        (AccountState.LIVE, None, None),
        (AccountState.LEAVING, AccountMoving, None),
        (AccountState.ARRIVING, AccountMoving, AccountMoving),
        (AccountState.MOVED, AccountMoved, AccountMoved),
    ],
)
def test_only_a_live_account_is_changed(
    state: AccountState, to_change: type[Refused] | None, to_read: type[Refused] | None
) -> None:
    for require, refusal in ((state.require_live, to_change), (state.require_readable, to_read)):
        if refusal is None:
            require()
        else:
            with pytest.raises(refusal):
                require()


def test_an_account_that_is_being_erased_is_not_live() -> None:
    account = Account(KEY_ID, "Studio", True, START)
    account.require_live()
    with pytest.raises(AccountErasing):
        replace(account, erasing_since=START).require_live()
    with pytest.raises(AccountMoved):
        replace(account, erasing_since=START, state=AccountState.MOVED).require_live()
