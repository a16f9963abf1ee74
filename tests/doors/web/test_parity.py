"""Generated from the route tables: what REST can do, the pages can do, or a list says why not."""

from dataclasses import replace

from cuepost.domain.access import ACCOUNT_SCOPES, SERVICE_SCOPES, Scope
from cuepost.doors.web.app import PAGES
from cuepost.doors.web.visit import PageRoute
from tests.application.world import OPERATOR, World
from tests.doors.exemptions import PAGES as THE_PAGES
from tests.doors.exemptions import WITHOUT_USE_CASE, exempt_from
from tests.doors.use_cases import noting, used_by_rest
from tests.doors.web.belongings import belongings_of
from tests.doors.web.guest import Guest, opened

# What fits every form; each takes what it knows.
FORM = {
    "url": "https://hooks.example.com/another",
    "host": "hooks.example.com",
    "name": "Trailer",
    "scopes": "projects:read",
    "sure": "yes",
    "to": "ready",
    "answer": "ok",
}
# A stream goes on until somebody leaves; the list that it belongs to asks the same use case.
STREAMS = ("/settings/deliveries/live",)


async def key_of(world: World, scopes: frozenset[Scope]) -> str:
    account = None if scopes <= SERVICE_SCOPES else world.account.id
    made = await world.do(
        world.service.access.create_key, OPERATOR, account, name="test", scopes=scopes
    )
    return made.token


def _leaving(page: PageRoute) -> int:
    """What takes something away comes late, and what ends the session last."""
    return page.path.endswith("/delete") + 2 * (page.path == "/sign-out")


async def used_by_pages(guest: Guest) -> set[str]:
    """Every page is opened and every form sent, by the owner of what they are about."""
    used: set[str] = set()
    owned = await belongings_of(guest)
    noted = replace(guest.world, service=noting(guest.world.service, used))
    owner = await replace(guest, world=noted).another().sign_in()
    token = owner.token()
    for page in sorted(PAGES, key=_leaving):
        path = owned.path_to(page)
        if page.get is not None and page.path not in STREAMS:
            assert (await owner.get(path)).status_code < 500, path
        if page.post is not None and not page.is_open:
            assert (await owner.post(path, _token=token, **FORM)).status_code < 500, path
    return used


async def test_every_use_case_of_rest_is_in_the_pages_or_is_exempt(sqlite_world: World) -> None:
    guest = opened(sqlite_world)
    world, offered = guest.world, await used_by_pages(guest)
    by_operation = await used_by_rest(
        world.service, await key_of(world, ACCOUNT_SCOPES), await key_of(world, SERVICE_SCOPES)
    )
    wanted = set().union(*by_operation.values())
    assert wanted - offered == exempt_from(THE_PAGES)


def test_what_needs_no_use_case_is_a_page_as_well() -> None:
    assert {doors[THE_PAGES] for doors in WITHOUT_USE_CASE.values()} <= {
        page.path for page in PAGES
    }
