"""API keys in the hands of their own account."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cuepost.domain.access import ACCOUNT_SCOPES, Scope
from cuepost.domain.errors import Invalid, MissingScope, NotFound
from tests.application.world import World

READ = frozenset({Scope.PROJECTS_READ})


async def test_keys_are_listed_newest_first_and_revoked(world: World) -> None:
    keys = world.service.keys
    made = [
        await world.do(keys.create, world.owner, name=name, scopes=READ, expires_at=None)
        for name in ("first", " second ")
    ]
    assert [key.name for key in await world.see(keys.all, world.owner)] == ["second", "first"]
    revoked = await world.do(keys.revoke, world.owner, made[0].key.id)
    assert revoked.revoked_at == world.clock.now()
    assert not revoked.accepts(made[0].token, world.clock.now())


async def test_nobody_hands_out_more_than_they_may_do(world: World) -> None:
    weak = replace(world.owner, scopes=frozenset({Scope.WEBHOOKS_MANAGE}))
    with pytest.raises(MissingScope):
        await world.do(
            world.service.keys.create, weak, name="more", scopes=ACCOUNT_SCOPES, expires_at=None
        )
    weaker = replace(world.owner, scopes=READ)
    for deed in (
        world.see(world.service.keys.all, weaker),
        world.do(world.service.keys.create, weaker, name="x", scopes=READ, expires_at=None),
    ):
        with pytest.raises(MissingScope):
            await deed


async def test_a_key_of_another_account_is_not_there(world: World) -> None:
    stranger = await world.new_owner()
    theirs = await world.do(
        world.service.keys.create, stranger, name="theirs", scopes=READ, expires_at=None
    )
    with pytest.raises(NotFound):
        await world.do(world.service.keys.revoke, world.owner, theirs.key.id)
    assert await world.see(world.service.keys.all, world.owner) == []


@pytest.mark.parametrize(
    ("name", "scopes", "days", "field"),
    [
        ("", READ, 1, "name"),
        ("a" * 201, READ, 1, "name"),
        ("good", READ, 0, "expiresAt"),
        ("good", frozenset[Scope](), 1, "scopes"),
    ],
)
async def test_bad_wishes_are_refused_by_field(
    world: World, name: str, scopes: frozenset[Scope], days: int, field: str
) -> None:
    with pytest.raises(Invalid) as caught:
        await world.do(
            world.service.keys.create,
            world.owner,
            name=name,
            scopes=scopes,
            expires_at=world.clock.now() + timedelta(days=days),
        )
    assert [error.field for error in caught.value.errors] == [field]
