"""A secret waits at an address of its own: for its account, for a while, and for one look."""

from dataclasses import replace

import pytest

from cuepost.application.reveal_secret import Revealed, RevealOffer
from cuepost.domain.errors import MissingScope, NotFound
from cuepost.domain.signing import SigningSecret
from tests.application.world import BASE_URL, World

PREFIX = f"{BASE_URL}/reveal/"


async def offered(world: World) -> tuple[RevealOffer, SigningSecret]:
    made = await world.endpoint()
    return await world.do(world.service.reveals.offer, world.owner, made), made.secret


def token_of(offer: RevealOffer) -> str:
    assert offer.url.startswith(PREFIX)
    return offer.url.removeprefix(PREFIX)


async def test_the_secret_is_shown_once_and_looking_before_costs_nothing(world: World) -> None:
    offer, secret = await offered(world)
    reveals, token = world.service.reveals, token_of(offer)
    waiting = await world.see(reveals.waiting, world.owner, token)
    assert await world.do(reveals.show, world.owner, token) == Revealed(waiting.webhook_id, secret)
    for look in (reveals.show, reveals.waiting):
        with pytest.raises(NotFound):
            await world.do(look, world.owner, token)
    assert next(entry.action for entry in await world.audit()) == "webhook.secret_revealed"


async def test_after_a_quarter_of_an_hour_it_is_gone(world: World) -> None:
    offer, _ = await offered(world)
    world.clock.advance(minutes=15)
    assert world.clock.now() == offer.expires_at
    with pytest.raises(NotFound):
        await world.do(world.service.reveals.show, world.owner, token_of(offer))


async def test_another_account_finds_nothing_at_the_address(world: World) -> None:
    offer, secret = await offered(world)
    stranger = await world.new_owner()
    with pytest.raises(NotFound):
        await world.do(world.service.reveals.show, stranger, token_of(offer))
    shown = await world.do(world.service.reveals.show, world.owner, token_of(offer))
    assert shown.secret == secret


async def test_offering_and_showing_need_the_scope_that_making_a_secret_needs(world: World) -> None:
    offer, _ = await offered(world)
    weak = replace(world.owner, scopes=frozenset())
    with pytest.raises(MissingScope):
        await world.do(world.service.reveals.show, weak, token_of(offer))
    made = await world.endpoint()
    with pytest.raises(MissingScope):
        await world.do(world.service.reveals.offer, weak, made)


async def test_neither_the_secret_nor_the_address_is_in_the_store_or_in_a_repr(
    world: World,
) -> None:
    offer, secret = await offered(world)
    told = f"{await world.dump()} {offer!r}"
    assert secret.reveal() not in told
    assert token_of(offer) not in told
    assert repr(secret.key) not in told
