"""Every stored value can be sealed with a new master key, and the old one be taken away."""

from dataclasses import replace

import pytest

from cuepost.adapters.secret_box import AesGcmBox
from cuepost.application import rekey
from cuepost.application.perform import IdempotentCall, Perform
from cuepost.application.rekey import KeysInUse, Rekey
from cuepost.domain.access import Caller
from cuepost.domain.errors import Refused
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction
from cuepost.ports.system import CannotOpen
from cuepost.testing import RepeatableEntropy
from tests.application.harness import Harness

OLD, NEW = bytes(32), bytes(range(32))
CALL = IdempotentCall("once", b"fingerprint")


def box(*keys: bytes) -> AesGcmBox:
    return AesGcmBox(keys, RepeatableEntropy("rekey"))


def rekey_with(harness: Harness, *keys: bytes) -> Rekey:
    sealed = box(*keys)
    return Rekey(Perform(harness.store, harness.clock, sealed), harness.clock, sealed)


def id_of(key: bytes) -> str:
    return box(key).key_ids[0].hex()


async def fill(harness: Harness) -> None:
    """Something of every kind, under the old key."""
    for _ in range(2):
        await harness.endpoint()
    webhooks, reveals = harness.service.webhooks, harness.service.reveals

    async def offer(transaction: Transaction) -> None:
        made = await webhooks.create(transaction, harness.owner, "https://example.com/x", None, "")
        await reveals.offer(transaction, harness.owner, made)

    await harness.service.perform.change(offer)

    async def answer(transaction: Transaction) -> bytes:
        return b"an answer"

    await harness.service.perform.once(harness.owner, CALL, answer, unrefused)


def unrefused(refused: Refused) -> bytes:
    raise refused


async def signing_keys(harness: Harness, opening: AesGcmBox, owner: Caller) -> set[bytes]:
    async with harness.store.snapshot() as transaction:
        endpoints = await harness.service.webhooks.page(transaction, owner, Page(limit=10))
        ids = [each.endpoint.id for each in endpoints]
        found = await transaction.endpoints.secrets(owner.account, ids)
    return {
        opening.open(secret.sealed, webhook_id.bytes)
        for webhook_id, secrets in found.items()
        for secret in secrets
    }


async def test_after_all_steps_nothing_is_under_the_old_key(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rekey, "AT_ONCE", 3)
    await fill(harness)
    before = await signing_keys(harness, box(OLD), harness.owner)
    both = rekey_with(harness, NEW, OLD)
    assert await both.keys_in_use() == KeysInUse(id_of(NEW), {id_of(OLD): 5}, frozenset())
    assert [await both.step() for _ in range(3)] == [3, 2, 0]
    assert await both.keys_in_use() == KeysInUse(id_of(NEW), {id_of(NEW): 5}, frozenset())

    assert await signing_keys(harness, box(NEW), harness.owner) == before
    perform = Perform(harness.store, harness.clock, box(NEW))

    async def fail(transaction: Transaction) -> bytes:
        raise AssertionError("the answer is remembered")

    assert (await perform.once(harness.owner, CALL, fail, unrefused)).content == b"an answer"


async def test_without_an_old_key_there_is_nothing_to_do(harness: Harness) -> None:
    await fill(harness)
    assert await rekey_with(harness, OLD).step() == 0


async def test_what_is_under_a_key_that_is_not_given_is_counted_and_left_alone(
    harness: Harness,
) -> None:
    await fill(harness)
    lost = rekey_with(harness, NEW)
    keys = await lost.keys_in_use()
    assert (keys.lost, keys.older, keys.unknown) == (5, 0, frozenset({id_of(OLD)}))
    assert await lost.step() == 0
    with pytest.raises(CannotOpen):
        await signing_keys(harness, box(NEW), harness.owner)
    assert len(await signing_keys(harness, box(OLD), harness.owner)) == 3


async def test_a_value_that_changes_meanwhile_is_not_overwritten(harness: Harness) -> None:
    await fill(harness)
    async with harness.store.transaction() as transaction:
        [value, *_] = await transaction.sealed.some_under([box(OLD).key_ids[0]], 10)
        assert await transaction.sealed.replace(value, b"newer")
        assert not await transaction.sealed.replace(value, b"older")
        assert await transaction.sealed.replace(replace(value, sealed=b"newer"), value.sealed)


async def test_the_count_for_health_checks_is_of_signing_secrets_and_kept_for_a_while(
    harness: Harness,
) -> None:
    await fill(harness)
    both = rekey_with(harness, NEW, OLD)
    assert (await both.keys_of_secrets()).counts == {id_of(OLD): 3}
    await both.step()
    assert (await both.keys_of_secrets()).counts == {id_of(OLD): 3}
    harness.clock.advance(30)
    assert (await both.keys_of_secrets()).counts == {id_of(NEW): 3}
