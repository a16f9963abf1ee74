"""What an operator does with accounts and keys."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.access import NewKey
from cuepost.domain.access import (
    ACCOUNT_SCOPES,
    SERVICE_SCOPES,
    Account,
    ApiKey,
    Interface,
    KeyKind,
    Scope,
    digest,
    key_id_in,
    kind_of,
)
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.domain.errors import FieldError, Invalid, NotFound
from tests.application.harness import OPERATOR, Harness

NOTHING = UUID(int=1)


async def new_key(harness: Harness, account_id: UUID | None, *scopes: Scope) -> NewKey:
    return await harness.do(
        harness.service.access.create_key, OPERATOR, account_id, name="CI", scopes=scopes
    )


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_new_account_is_open_or_closed_as_asked(harness: Harness, enabled: bool) -> None:
    made = await harness.do(harness.service.access.create_account, OPERATOR, "Studio", enabled)
    assert made == Account(made.id, "Studio", enabled, harness.clock.now())
    assert await harness.see(lambda transaction: transaction.accounts.get(made.id)) == made


async def test_access_is_opened_and_closed_per_account(harness: Harness) -> None:
    set_webhooks = harness.service.access.set_webhooks
    other = await harness.new_owner(webhooks_enabled=False)
    closed = await harness.do(set_webhooks, OPERATOR, harness.account.id, False)
    assert closed == replace(harness.account, webhooks_enabled=False)
    opened = await harness.do(set_webhooks, OPERATOR, harness.account.id, True)
    assert opened == harness.account
    untouched = await harness.see(lambda transaction: transaction.accounts.get(other.account))
    assert untouched is not None
    assert not untouched.webhooks_enabled


async def test_closing_an_account_stops_everything_that_is_pending_in_it(harness: Harness) -> None:
    await harness.endpoint()
    await harness.endpoint("project.completed")
    await harness.report(harness.milestone(await harness.project()))
    stranger = await harness.new_owner()
    await harness.endpoint(caller=stranger)
    await harness.report(harness.milestone(await harness.project(caller=stranger)))
    untouched = await harness.deliveries(stranger)
    await harness.do(harness.service.access.set_webhooks, OPERATOR, harness.account.id, False)
    assert [(each.status, each.reason) for each in await harness.deliveries()] == [
        (DeliveryStatus.CANCELLED, CancelReason.ACCESS_CLOSED)
    ] * 2
    assert await harness.deliveries(stranger) == untouched
    assert await harness.queued() == {each.id for each in untouched}


async def test_opening_an_account_again_starts_nothing(harness: Harness) -> None:
    await harness.endpoint()
    await harness.complete()
    for enabled in (False, True):
        await harness.do(harness.service.access.set_webhooks, OPERATOR, harness.account.id, enabled)
    assert [each.status for each in await harness.deliveries()] == [DeliveryStatus.CANCELLED]


async def test_an_unknown_account_cannot_be_opened(harness: Harness) -> None:
    with pytest.raises(NotFound):
        await harness.do(harness.service.access.set_webhooks, OPERATOR, NOTHING, True)


async def test_a_new_key_of_an_account_is_stored_as_a_digest(harness: Harness) -> None:
    end = harness.clock.now() + timedelta(days=1)
    made = await harness.do(
        harness.service.access.create_key,
        OPERATOR,
        harness.account.id,
        name="CI",
        scopes=[Scope.PROJECTS_READ],
        expires_at=end,
    )
    assert made.key == ApiKey(
        id=made.key.id,
        account_id=harness.account.id,
        name="CI",
        digest=digest(made.token),
        scopes=frozenset({Scope.PROJECTS_READ}),
        created_at=harness.clock.now(),
        expires_at=end,
    )
    assert key_id_in(made.token) == made.key.id
    assert await harness.see(lambda t: t.keys.all(harness.account.id)) == [made.key]


async def test_a_key_without_an_account_is_a_service_key(harness: Harness) -> None:
    made = await new_key(harness, None, Scope.MILESTONES_REPORT)
    assert (made.key.account_id, made.key.scopes) == (None, SERVICE_SCOPES)
    assert await harness.see(lambda t: t.keys.all(None)) == [made.key]


async def test_a_key_with_scopes_of_the_operator_is_an_operator_key(harness: Harness) -> None:
    made = await new_key(harness, None, Scope.ACCOUNTS_READ, Scope.PORTAL_CREATE)
    assert (made.key.account_id, kind_of(made.key.scopes)) == (None, KeyKind.OPERATOR)
    known = await harness.service.authenticate.caller(made.token, Interface.REST, None)
    assert (known.actor, known.account_id, known.scopes) == (
        f"key:{made.key.id}",
        None,
        made.key.scopes,
    )


async def test_no_token_is_in_the_store_or_in_a_repr(harness: Harness) -> None:
    made = await new_key(harness, harness.account.id, *ACCOUNT_SCOPES)
    secret = made.token.removeprefix("cpk_")[32:]
    assert secret not in repr(made) + repr(await harness.dump()) + repr(await harness.audit())
    assert repr(made) == f"NewKey({made.key.id})"


@pytest.mark.parametrize(
    ("service", "scopes", "possible"),
    [
        (False, [], ", ".join(sorted(ACCOUNT_SCOPES))),
        (
            False,
            [Scope.PROJECTS_READ, Scope.MILESTONES_REPORT],
            ", ".join(sorted(ACCOUNT_SCOPES)),
        ),
        (True, [], "milestones:report"),
        (True, [Scope.MILESTONES_REPORT, Scope.PROJECTS_READ], "milestones:report"),
        (
            True,
            [Scope.MILESTONES_REPORT, Scope.ACCOUNTS_READ],
            "accounts:manage, accounts:read, portal:create",
        ),
        (
            False,
            [Scope.PROJECTS_READ, Scope.ACCOUNTS_READ],
            ", ".join(sorted(ACCOUNT_SCOPES)),
        ),
    ],
)
async def test_a_key_has_only_scopes_that_fit_its_owner(
    harness: Harness, service: bool, scopes: list[Scope], possible: str
) -> None:
    before = await harness.dump()
    with pytest.raises(Invalid) as refused:
        await new_key(harness, None if service else harness.account.id, *scopes)
    assert refused.value.errors == (
        FieldError("scopes", "scope_not_possible", f"Choose from {possible}."),
    )
    assert await harness.dump() == before


async def test_a_key_of_an_unknown_account_is_refused(harness: Harness) -> None:
    before = await harness.dump()
    with pytest.raises(NotFound):
        await new_key(harness, NOTHING, Scope.PROJECTS_READ)
    assert await harness.dump() == before


async def test_a_revoked_key_stays_listed_with_the_first_time_of_its_end(harness: Harness) -> None:
    made = await new_key(harness, harness.account.id, Scope.PROJECTS_READ)
    revoke = harness.service.access.revoke_key
    revoked = await harness.do(revoke, OPERATOR, made.key.id)
    assert revoked == replace(made.key, revoked_at=harness.clock.now())
    harness.clock.advance(60)
    assert await harness.do(revoke, OPERATOR, made.key.id) == revoked
    assert await harness.see(lambda t: t.keys.all(harness.account.id)) == [revoked]


async def test_a_service_key_can_be_revoked(harness: Harness) -> None:
    made = await new_key(harness, None, Scope.MILESTONES_REPORT)
    revoked = await harness.do(harness.service.access.revoke_key, OPERATOR, made.key.id)
    assert revoked.revoked_at == harness.clock.now()


async def test_an_unknown_key_cannot_be_revoked(harness: Harness) -> None:
    with pytest.raises(NotFound):
        await harness.do(harness.service.access.revoke_key, OPERATOR, NOTHING)


async def test_erasing_removes_everything_of_the_account_and_nothing_else(
    harness: Harness,
) -> None:
    stranger = await harness.new_owner()
    await harness.endpoint(caller=stranger)
    await harness.report(harness.milestone(await harness.project(caller=stranger)))
    service_key = await new_key(harness, None, Scope.MILESTONES_REPORT)
    before = await harness.dump()
    kept = {
        name: [row for row in rows if harness.account.id not in row]
        for name, rows in before.items()
    }
    webhook = (await harness.endpoint()).view.endpoint
    await harness.do(harness.service.webhooks.rotate_secret, harness.owner, webhook.id)
    await new_key(harness, harness.account.id, Scope.PROJECTS_READ)
    for _ in range(5):
        await harness.complete()
    steps = 0
    while not await harness.service.maintenance.erasing.step(harness.account.id, rows=2):
        steps += 1
        assert steps < 50
    assert steps > 2
    assert {name: list(rows) for name, rows in (await harness.dump()).items()} == kept
    assert await harness.see(lambda t: t.keys.all(None)) == [service_key.key]
    with pytest.raises(NotFound):
        await harness.service.maintenance.erasing.step(harness.account.id)
