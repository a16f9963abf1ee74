"""Every stored value can be sealed with a new master key, and the old one be taken away."""

from dataclasses import replace

import pytest

from cuepost.adapters.secret_box import AesGcmBox, CannotOpen
from cuepost.application import rekey
from cuepost.application.perform import IdempotentCall, Perform
from cuepost.application.rekey import KeysInUse, Rekey
from cuepost.domain.access import Caller
from cuepost.domain.errors import Refused
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction
from cuepost.testing import RepeatableEntropy
from tests.application.world import World

OLD, NEW = bytes(32), bytes(range(32))
CALL = IdempotentCall("once", b"fingerprint")


def box(*keys: bytes) -> AesGcmBox:
    return AesGcmBox(keys, RepeatableEntropy("rekey"))


def rekey_with(world: World, *keys: bytes) -> Rekey:
    sealed = box(*keys)
    return Rekey(Perform(world.store, world.clock, sealed), world.clock, sealed)


def id_of(key: bytes) -> str:
    return box(key).key_ids[0].hex()


async def fill(world: World) -> None:
    """Something of every kind, under the old key."""
    for _ in range(2):
        await world.endpoint()
    webhooks, reveals = world.service.webhooks, world.service.reveals

    async def offer(transaction: Transaction) -> None:
        made = await webhooks.create(transaction, world.owner, "https://example.com/x", None, "")
        await reveals.offer(transaction, world.owner, made)

    await world.service.perform.change(offer)

    async def answer(transaction: Transaction) -> bytes:
        return b"an answer"

    await world.service.perform.once(world.owner, CALL, answer, unrefused)


def unrefused(refused: Refused) -> bytes:
    raise refused


async def signing_keys(world: World, opening: AesGcmBox, owner: Caller) -> set[bytes]:
    async with world.store.snapshot() as transaction:
        endpoints = await world.service.webhooks.page(transaction, owner, Page(limit=10))
        ids = [each.endpoint.id for each in endpoints]
        found = await transaction.endpoints.secrets(owner.account, ids)
    return {
        opening.open(secret.sealed, webhook_id.bytes)
        for webhook_id, secrets in found.items()
        for secret in secrets
    }


async def test_after_all_steps_nothing_is_under_the_old_key(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rekey, "AT_ONCE", 3)
    await fill(world)
    before = await signing_keys(world, box(OLD), world.owner)
    both = rekey_with(world, NEW, OLD)
    assert await both.keys_in_use() == KeysInUse(id_of(NEW), {id_of(OLD): 5}, frozenset())
    assert [await both.step() for _ in range(3)] == [3, 2, 0]
    assert await both.keys_in_use() == KeysInUse(id_of(NEW), {id_of(NEW): 5}, frozenset())

    assert await signing_keys(world, box(NEW), world.owner) == before
    perform = Perform(world.store, world.clock, box(NEW))

    async def fail(transaction: Transaction) -> bytes:
        raise AssertionError("the answer is remembered")

    assert (await perform.once(world.owner, CALL, fail, unrefused)).content == b"an answer"


async def test_without_an_old_key_there_is_nothing_to_do(world: World) -> None:
    await fill(world)
    assert await rekey_with(world, OLD).step() == 0


async def test_what_is_under_a_key_that_is_not_given_is_counted_and_left_alone(
    world: World,
) -> None:
    await fill(world)
    lost = rekey_with(world, NEW)
    keys = await lost.keys_in_use()
    assert (keys.lost, keys.older, keys.unknown) == (5, 0, frozenset({id_of(OLD)}))
    assert await lost.step() == 0
    with pytest.raises(CannotOpen):
        await signing_keys(world, box(NEW), world.owner)
    assert len(await signing_keys(world, box(OLD), world.owner)) == 3


async def test_a_value_that_changes_meanwhile_is_not_overwritten(world: World) -> None:
    await fill(world)
    async with world.store.transaction() as transaction:
        [value, *_] = await transaction.sealed.some_under([box(OLD).key_ids[0]], 10)
        assert await transaction.sealed.replace(value, b"newer")
        assert not await transaction.sealed.replace(value, b"older")
        assert await transaction.sealed.replace(replace(value, sealed=b"newer"), value.sealed)


async def test_the_count_for_health_checks_is_of_signing_secrets_and_kept_for_a_while(
    world: World,
) -> None:
    await fill(world)
    both = rekey_with(world, NEW, OLD)
    assert (await both.keys_of_secrets()).counts == {id_of(OLD): 3}
    await both.step()
    assert (await both.keys_of_secrets()).counts == {id_of(OLD): 3}
    world.clock.advance(30)
    assert (await both.keys_of_secrets()).counts == {id_of(NEW): 3}
