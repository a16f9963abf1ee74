"""Authentication by key: who the caller is, how long that is cached, and when the key was used."""

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from cuepost.application import admission
from cuepost.domain.access import ACCOUNT_SCOPES, SERVICE_SCOPES, Caller, Interface, Scope
from cuepost.domain.errors import Unauthenticated
from tests.application.harness import OPERATOR, RULES, Harness


@dataclass(frozen=True)
class Holder:
    """Someone with a token, in front of one process."""

    harness: Harness
    token: str

    async def knock(self) -> Caller:
        return await self.harness.service.authenticate.caller(
            self.token, Interface.REST, "192.0.2.1"
        )


async def holder(
    harness: Harness, *, service: bool = False, expires_in: timedelta | None = None
) -> Holder:
    made = await harness.do(
        harness.service.access.create_key,
        OPERATOR,
        None if service else harness.account.id,
        name="CI",
        scopes=SERVICE_SCOPES if service else ACCOUNT_SCOPES,
        expires_at=None if expires_in is None else harness.clock.now() + expires_in,
    )
    return Holder(harness, made.token)


async def test_a_valid_key_tells_who_is_calling(harness: Harness) -> None:
    known = await holder(harness)
    [key] = await harness.see(lambda t: t.keys.all(harness.account.id))
    assert await known.knock() == Caller(
        interface=Interface.REST,
        actor=f"key:{key.id}",
        account_id=harness.account.id,
        scopes=ACCOUNT_SCOPES,
        webhooks_enabled=True,
        address="192.0.2.1",
        id=key.id,
        name="CI",
    )


async def test_a_service_key_calls_for_no_account(harness: Harness) -> None:
    caller = await (await holder(harness, service=True)).knock()
    assert (caller.account_id, caller.scopes) == (None, frozenset({Scope.MILESTONES_REPORT}))
    assert not caller.webhooks_enabled


async def test_what_is_no_token_and_what_fits_no_key_is_refused_alike(harness: Harness) -> None:
    known = await holder(harness)
    changed = known.token[:-1] + ("A" if known.token[-1] != "A" else "B")
    unknown = known.token.replace(known.token[4:8], "ffff")
    for token in ("", "nonsense", changed, unknown):
        with pytest.raises(Unauthenticated):
            await Holder(harness, token).knock()


async def test_an_account_that_was_closed_is_known_within_a_second(harness: Harness) -> None:
    known = await holder(harness)
    assert (await known.knock()).webhooks_enabled
    await harness.do(harness.service.access.set_webhooks, OPERATOR, harness.account.id, False)
    harness.clock.advance(1)
    assert not (await known.knock()).webhooks_enabled


async def test_a_revoked_key_is_refused_within_a_second_by_every_process(harness: Harness) -> None:
    here = await holder(harness)
    there = Holder(harness.reassembled(RULES), here.token)
    await here.knock()
    await there.knock()
    [key] = await harness.see(lambda t: t.keys.all(harness.account.id))
    await harness.do(harness.service.access.revoke_key, OPERATOR, key.id)
    harness.clock.advance(1)
    for known in (here, there):
        with pytest.raises(Unauthenticated):
            await known.knock()


async def test_a_key_is_refused_from_the_instant_of_its_expiry(harness: Harness) -> None:
    known = await holder(harness, expires_in=timedelta(hours=1))
    await known.knock()
    harness.clock.advance(3_599.999)
    fresh = Holder(harness.reassembled(RULES), known.token)
    await fresh.knock()
    harness.clock.advance(0.001)
    with pytest.raises(Unauthenticated):
        await Holder(harness.reassembled(RULES), known.token).knock()


async def test_a_key_of_an_erased_account_is_refused(harness: Harness) -> None:
    known = await holder(harness)
    await known.knock()
    await harness.sql(lambda t: t.accounts.erase_some(harness.account.id, 0))
    harness.clock.advance(1)
    with pytest.raises(Unauthenticated):
        await known.knock()


async def test_a_known_key_is_trusted_for_a_second_without_asking_the_store(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = await holder(harness)
    first = await known.knock()
    with monkeypatch.context() as patch:
        patch.setattr(type(harness.store), "snapshot", None)
        harness.clock.advance(0.999)
        assert await known.knock() == first
        harness.clock.advance(0.001)
        with pytest.raises(TypeError):
            await known.knock()
    assert await known.knock() == first


async def test_the_last_use_is_written_down_once_a_minute(harness: Harness) -> None:
    known = await holder(harness)

    async def last_used() -> timedelta | None:
        [key] = await harness.see(lambda t: t.keys.all(harness.account.id))
        return None if key.last_used_at is None else key.last_used_at - key.created_at

    assert await last_used() is None
    await known.knock()
    assert await last_used() == timedelta(0)
    harness.clock.advance(59.999)
    await known.knock()
    assert await last_used() == timedelta(0)
    harness.clock.advance(1)
    await known.knock()
    assert await last_used() == timedelta(seconds=60.999)


async def test_a_refused_key_is_not_marked_as_used(harness: Harness) -> None:
    known = await holder(harness, expires_in=timedelta(0))
    with pytest.raises(Unauthenticated):
        await known.knock()
    [key] = await harness.see(lambda t: t.keys.all(harness.account.id))
    assert key.last_used_at is None


async def test_memory_of_keys_is_bounded(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "REMEMBERED_KEYS", 2)
    holders = [await holder(harness) for _ in range(3)]
    callers = [await each.knock() for each in holders]
    assert len({caller.actor for caller in callers}) == 3
    assert [await each.knock() for each in holders] == callers
    assert len(harness.service.authenticate._known) <= 2


async def test_the_interface_and_the_address_of_each_call_are_its_own(harness: Harness) -> None:
    known = await holder(harness)
    over_rest = await known.knock()
    over_mcp = await harness.service.authenticate.caller(known.token, Interface.MCP, None)
    assert over_mcp == replace(over_rest, interface=Interface.MCP, address=None)
