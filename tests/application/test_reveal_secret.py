"""A secret waits at an address of its own: for its account, for a while, and for one look."""

from dataclasses import replace

import pytest

from cuepost.application.reveal_secret import Revealed, RevealOffer
from cuepost.domain.errors import MissingScope, NotFound
from cuepost.domain.signing import SigningSecret
from tests.application.harness import BASE_URL, Harness

PREFIX = f"{BASE_URL}/reveal/"


async def offered(harness: Harness) -> tuple[RevealOffer, SigningSecret]:
    made = await harness.endpoint()
    return await harness.do(harness.service.reveals.offer, harness.owner, made), made.secret


def token_of(offer: RevealOffer) -> str:
    assert offer.url.startswith(PREFIX)
    return offer.url.removeprefix(PREFIX)


async def test_the_secret_is_shown_once_and_looking_before_costs_nothing(harness: Harness) -> None:
    offer, secret = await offered(harness)
    reveals, token = harness.service.reveals, token_of(offer)
    waiting = await harness.see(reveals.waiting, harness.owner, token)
    assert await harness.do(reveals.show, harness.owner, token) == Revealed(
        waiting.webhook_id, secret
    )
    for look in (reveals.show, reveals.waiting):
        with pytest.raises(NotFound):
            await harness.do(look, harness.owner, token)
    assert next(entry.action for entry in await harness.audit()) == "webhook.secret_revealed"


async def test_after_a_quarter_of_an_hour_it_is_gone(harness: Harness) -> None:
    offer, _ = await offered(harness)
    harness.clock.advance(minutes=15)
    assert harness.clock.now() == offer.expires_at
    with pytest.raises(NotFound):
        await harness.do(harness.service.reveals.show, harness.owner, token_of(offer))


async def test_another_account_finds_nothing_at_the_address(harness: Harness) -> None:
    offer, secret = await offered(harness)
    stranger = await harness.new_owner()
    with pytest.raises(NotFound):
        await harness.do(harness.service.reveals.show, stranger, token_of(offer))
    shown = await harness.do(harness.service.reveals.show, harness.owner, token_of(offer))
    assert shown.secret == secret


async def test_offering_and_showing_need_the_scope_that_making_a_secret_needs(
    harness: Harness,
) -> None:
    offer, _ = await offered(harness)
    weak = replace(harness.owner, scopes=frozenset())
    with pytest.raises(MissingScope):
        await harness.do(harness.service.reveals.show, weak, token_of(offer))
    made = await harness.endpoint()
    with pytest.raises(MissingScope):
        await harness.do(harness.service.reveals.offer, weak, made)


async def test_neither_the_secret_nor_the_address_is_in_the_store_or_in_a_repr(
    harness: Harness,
) -> None:
    offer, secret = await offered(harness)
    reported = f"{await harness.dump()} {offer!r}"
    assert secret.reveal() not in reported
    assert token_of(offer) not in reported
    assert repr(secret.key) not in reported
