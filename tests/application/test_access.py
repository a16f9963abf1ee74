"""What an operator does with accounts and keys."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application import erase_account
from cuepost.application.access import NewKey
from cuepost.domain.access import (
    ACCOUNT_SCOPES,
    SERVICE_SCOPES,
    Account,
    ApiKey,
    Scope,
    digest,
    key_id_in,
)
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.domain.errors import FieldError, Invalid, NotFound
from tests.application.world import OPERATOR, World

NOTHING = UUID(int=1)


async def new_key(world: World, account_id: UUID | None, *scopes: Scope) -> NewKey:
    return await world.do(
        world.service.access.create_key, OPERATOR, account_id, name="CI", scopes=scopes
    )


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_new_account_is_open_or_closed_as_asked(world: World, enabled: bool) -> None:
    made = await world.do(world.service.access.create_account, OPERATOR, "Studio", enabled)
    assert made == Account(made.id, "Studio", enabled, world.clock.now())
    assert await world.see(lambda transaction: transaction.accounts.get(made.id)) == made


async def test_access_is_opened_and_closed_per_account(world: World) -> None:
    set_webhooks = world.service.access.set_webhooks
    other = await world.new_owner(webhooks_enabled=False)
    closed = await world.do(set_webhooks, OPERATOR, world.account.id, False)
    assert closed == replace(world.account, webhooks_enabled=False)
    opened = await world.do(set_webhooks, OPERATOR, world.account.id, True)
    assert opened == world.account
    untouched = await world.see(lambda transaction: transaction.accounts.get(other.account))
    assert untouched is not None
    assert not untouched.webhooks_enabled


async def test_closing_an_account_stops_everything_that_is_pending_in_it(world: World) -> None:
    await world.endpoint()
    await world.endpoint("project.completed")
    await world.report(world.milestone(await world.project()))
    stranger = await world.new_owner()
    await world.endpoint(caller=stranger)
    await world.report(world.milestone(await world.project(caller=stranger)))
    untouched = await world.deliveries(stranger)
    await world.do(world.service.access.set_webhooks, OPERATOR, world.account.id, False)
    assert [(each.status, each.reason) for each in await world.deliveries()] == [
        (DeliveryStatus.CANCELLED, CancelReason.ACCESS_CLOSED)
    ] * 2
    assert await world.deliveries(stranger) == untouched
    assert await world.queued() == {each.id for each in untouched}


async def test_opening_an_account_again_starts_nothing(world: World) -> None:
    await world.endpoint()
    await world.complete()
    for enabled in (False, True):
        await world.do(world.service.access.set_webhooks, OPERATOR, world.account.id, enabled)
    assert [each.status for each in await world.deliveries()] == [DeliveryStatus.CANCELLED]


async def test_an_unknown_account_cannot_be_opened(world: World) -> None:
    with pytest.raises(NotFound):
        await world.do(world.service.access.set_webhooks, OPERATOR, NOTHING, True)


async def test_a_new_key_of_an_account_is_stored_as_a_digest(world: World) -> None:
    end = world.clock.now() + timedelta(days=1)
    made = await world.do(
        world.service.access.create_key,
        OPERATOR,
        world.account.id,
        name="CI",
        scopes=[Scope.PROJECTS_READ],
        expires_at=end,
    )
    assert made.key == ApiKey(
        id=made.key.id,
        account_id=world.account.id,
        name="CI",
        digest=digest(made.token),
        scopes=frozenset({Scope.PROJECTS_READ}),
        created_at=world.clock.now(),
        expires_at=end,
    )
    assert key_id_in(made.token) == made.key.id
    assert await world.see(lambda t: t.keys.all(world.account.id)) == [made.key]


async def test_a_key_without_an_account_is_a_service_key(world: World) -> None:
    made = await new_key(world, None, Scope.MILESTONES_REPORT)
    assert (made.key.account_id, made.key.scopes) == (None, SERVICE_SCOPES)
    assert await world.see(lambda t: t.keys.all(None)) == [made.key]


async def test_no_token_is_in_the_store_or_in_a_repr(world: World) -> None:
    made = await new_key(world, world.account.id, *ACCOUNT_SCOPES)
    secret = made.token.removeprefix("cpk_")[32:]
    assert secret not in repr(made) + repr(await world.dump()) + repr(await world.audit())
    assert repr(made) == f"NewKey({made.key.id})"


@pytest.mark.parametrize(
    ("service", "scopes", "possible"),
    [
        (False, [], "projects:read, projects:write, webhooks:manage, webhooks:read"),
        (
            False,
            [Scope.PROJECTS_READ, Scope.MILESTONES_REPORT],
            "projects:read, projects:write, webhooks:manage, webhooks:read",
        ),
        (True, [], "milestones:report"),
        (True, [Scope.MILESTONES_REPORT, Scope.PROJECTS_READ], "milestones:report"),
    ],
)
async def test_a_key_has_only_scopes_that_fit_its_owner(
    world: World, service: bool, scopes: list[Scope], possible: str
) -> None:
    before = await world.dump()
    with pytest.raises(Invalid) as refused:
        await new_key(world, None if service else world.account.id, *scopes)
    assert refused.value.errors == (
        FieldError("scopes", "scope_not_possible", f"Choose from {possible}."),
    )
    assert await world.dump() == before


async def test_a_key_of_an_unknown_account_is_refused(world: World) -> None:
    before = await world.dump()
    with pytest.raises(NotFound):
        await new_key(world, NOTHING, Scope.PROJECTS_READ)
    assert await world.dump() == before


async def test_a_revoked_key_stays_listed_with_the_first_time_of_its_end(world: World) -> None:
    made = await new_key(world, world.account.id, Scope.PROJECTS_READ)
    revoke = world.service.access.revoke_key
    revoked = await world.do(revoke, OPERATOR, made.key.id)
    assert revoked == replace(made.key, revoked_at=world.clock.now())
    world.clock.advance(60)
    assert await world.do(revoke, OPERATOR, made.key.id) == revoked
    assert await world.see(lambda t: t.keys.all(world.account.id)) == [revoked]


async def test_a_service_key_can_be_revoked(world: World) -> None:
    made = await new_key(world, None, Scope.MILESTONES_REPORT)
    revoked = await world.do(world.service.access.revoke_key, OPERATOR, made.key.id)
    assert revoked.revoked_at == world.clock.now()


async def test_an_unknown_key_cannot_be_revoked(world: World) -> None:
    with pytest.raises(NotFound):
        await world.do(world.service.access.revoke_key, OPERATOR, NOTHING)


async def test_erasing_removes_everything_of_the_account_and_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erase_account, "ROWS_AT_ONCE", 2)
    stranger = await world.new_owner()
    await world.endpoint(caller=stranger)
    await world.report(world.milestone(await world.project(caller=stranger)))
    service_key = await new_key(world, None, Scope.MILESTONES_REPORT)
    before = await world.dump()
    kept = {
        name: [row for row in rows if world.account.id not in row] for name, rows in before.items()
    }
    webhook = (await world.endpoint()).view.endpoint
    await world.do(world.service.webhooks.rotate_secret, world.owner, webhook.id)
    await new_key(world, world.account.id, Scope.PROJECTS_READ)
    for _ in range(5):
        await world.complete()
    steps = 0
    while not await world.service.erasing.step(world.account.id):
        steps += 1
        assert steps < 50
    assert steps > 2
    assert {name: list(rows) for name, rows in (await world.dump()).items()} == kept
    assert await world.see(lambda t: t.keys.all(None)) == [service_key.key]
    with pytest.raises(NotFound):
        await world.service.erasing.step(world.account.id)
