"""API keys in the actions of their own account."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cuepost.domain.access import ACCOUNT_SCOPES, Scope
from cuepost.domain.errors import Invalid, MissingScope, NotFound
from tests.application.harness import Harness

READ = frozenset({Scope.PROJECTS_READ})


async def test_keys_are_listed_newest_first_and_revoked(harness: Harness) -> None:
    keys = harness.service.keys
    made = [
        await harness.do(keys.create, harness.owner, name=name, scopes=READ, expires_at=None)
        for name in ("first", " second ")
    ]
    assert [key.name for key in await harness.see(keys.all, harness.owner)] == ["second", "first"]
    revoked = await harness.do(keys.revoke, harness.owner, made[0].key.id)
    assert revoked.revoked_at == harness.clock.now()
    assert not revoked.accepts(made[0].token, harness.clock.now())


async def test_a_key_grants_no_more_than_its_maker_may_do(harness: Harness) -> None:
    weak = replace(harness.owner, scopes=frozenset({Scope.WEBHOOKS_MANAGE}))
    with pytest.raises(MissingScope):
        await harness.do(
            harness.service.keys.create, weak, name="more", scopes=ACCOUNT_SCOPES, expires_at=None
        )
    weaker = replace(harness.owner, scopes=READ)
    for deed in (
        harness.see(harness.service.keys.all, weaker),
        harness.do(harness.service.keys.create, weaker, name="x", scopes=READ, expires_at=None),
    ):
        with pytest.raises(MissingScope):
            await deed


async def test_a_key_of_another_account_is_not_there(harness: Harness) -> None:
    stranger = await harness.new_owner()
    theirs = await harness.do(
        harness.service.keys.create, stranger, name="theirs", scopes=READ, expires_at=None
    )
    with pytest.raises(NotFound):
        await harness.do(harness.service.keys.revoke, harness.owner, theirs.key.id)
    assert await harness.see(harness.service.keys.all, harness.owner) == []


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
    harness: Harness, name: str, scopes: frozenset[Scope], days: int, field: str
) -> None:
    with pytest.raises(Invalid) as caught:
        await harness.do(
            harness.service.keys.create,
            harness.owner,
            name=name,
            scopes=scopes,
            expires_at=harness.clock.now() + timedelta(days=days),
        )
    assert [error.field for error in caught.value.errors] == [field]
