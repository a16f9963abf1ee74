"""Signing secrets: shown once, rotated with an overlap of 24 hours, sealed at rest."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.manage_webhooks import EndpointView, EndpointWithSecret
from cuepost.domain.endpoint import Keyring
from cuepost.domain.errors import RotationOverlapActive
from tests.application.harness import EVERYTHING, RULES, Harness

OVERLAP = timedelta(hours=24)


async def rotate(harness: Harness, webhook_id: UUID) -> EndpointWithSecret:
    return await harness.do(harness.service.webhooks.rotate_secret, harness.owner, webhook_id)


async def look(harness: Harness, webhook_id: UUID) -> EndpointView:
    return await harness.see(harness.service.webhooks.get, harness.owner, webhook_id)


async def test_no_two_endpoints_share_a_secret(harness: Harness) -> None:
    made = [await harness.endpoint() for _ in range(3)]
    assert len({each.secret.key for each in made}) == 3


async def test_rotation_shows_a_new_secret_and_keeps_the_old_one_for_a_day(
    harness: Harness,
) -> None:
    first = await harness.endpoint()
    harness.clock.advance(days=3)
    second = await rotate(harness, first.view.endpoint.id)
    end = harness.clock.now() + OVERLAP
    assert second.secret.key != first.secret.key
    assert second.view.keyring.current.version == 2
    assert second.view.keyring == Keyring(
        second.view.keyring.current, first.view.keyring.current.expiring(end)
    )
    assert second.view.keyring.previous_expires_at == end
    assert second.view.keyring.current.hint == second.secret.hint
    assert await look(harness, first.view.endpoint.id) == second.view


async def test_rotation_is_blocked_until_the_overlap_has_ended(harness: Harness) -> None:
    webhook = (await harness.endpoint()).view.endpoint
    await rotate(harness, webhook.id)
    before = await harness.dump()
    harness.clock.advance(hours=23, minutes=59, seconds=59.999)
    with pytest.raises(RotationOverlapActive) as refused:
        await rotate(harness, webhook.id)
    assert refused.value.details == {"availableAt": "2026-01-03T03:04:05.678Z"}
    assert await harness.dump() == before
    harness.clock.advance(0.001)
    assert (await look(harness, webhook.id)).keyring.previous is None
    third = await rotate(harness, webhook.id)
    assert third.view.keyring.current.version == 3
    assert third.view.keyring.previous is not None
    assert third.view.keyring.previous.version == 2


async def test_after_the_overlap_one_secret_is_left(harness: Harness) -> None:
    webhook = (await harness.endpoint()).view.endpoint
    rotated = await rotate(harness, webhook.id)
    harness.clock.advance(hours=24)
    assert (await look(harness, webhook.id)).keyring == Keyring(rotated.view.keyring.current)


async def test_ending_the_overlap_stops_the_old_secret_and_allows_rotation(
    harness: Harness,
) -> None:
    webhook = (await harness.endpoint()).view.endpoint
    rotated = await rotate(harness, webhook.id)
    ended = await harness.do(harness.service.webhooks.end_overlap, harness.owner, webhook.id)
    assert ended.keyring == Keyring(rotated.view.keyring.current)
    assert len((await harness.dump())["signing_secrets"]) == 1
    assert (await rotate(harness, webhook.id)).view.keyring.current.version == 3


async def test_ending_an_overlap_that_is_not_there_changes_nothing(harness: Harness) -> None:
    view = (await harness.endpoint()).view
    before = await harness.dump()
    ended = await harness.do(harness.service.webhooks.end_overlap, harness.owner, view.endpoint.id)
    assert ended == view
    assert await harness.dump() == before


async def test_the_length_of_the_overlap_can_be_set(harness: Harness) -> None:
    shorter = harness.reassembled(replace(RULES, rotation_overlap=timedelta(hours=1)))
    webhook = (await shorter.endpoint()).view.endpoint
    rotated = await rotate(shorter, webhook.id)
    assert rotated.view.keyring.previous_expires_at == harness.clock.now() + timedelta(hours=1)


async def test_sealed_secrets_open_for_their_own_endpoint_alone(harness: Harness) -> None:
    one, other = await harness.endpoint(), await harness.endpoint()
    sealed = one.view.keyring.current.sealed
    assert harness.box.open(sealed, one.view.endpoint.id.bytes) == one.secret.key
    with pytest.raises(Exception, match="None of the master keys opens this value"):
        harness.box.open(sealed, other.view.endpoint.id.bytes)


async def test_no_secret_is_in_the_store_in_a_list_or_in_any_repr(harness: Harness) -> None:
    made = await harness.endpoint()
    rotated = await rotate(harness, made.view.endpoint.id)
    listed = await harness.see(harness.service.webhooks.page, harness.owner, EVERYTHING)
    shown = f"{made!r} {rotated!r} {listed!r} {await harness.audit()!r}"
    everything = shown + repr(await harness.dump())
    for secret in (made.secret, rotated.secret):
        text = secret.reveal().removeprefix("whsec_")
        assert text not in everything
        assert repr(secret.key)[2:-1] not in everything
        assert secret.key.hex() not in everything
    assert repr(made.view.keyring.current.sealed)[2:-1] not in shown
