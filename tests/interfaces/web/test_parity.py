"""Generated from the route tables: what REST can do, the pages can do, or a list says why not."""

from dataclasses import replace

from cuepost.domain.access import ACCOUNT_SCOPES, OPERATOR_SCOPES, SERVICE_SCOPES, Scope
from cuepost.interfaces.web.app import OPERATOR_PAGES, PAGES
from cuepost.interfaces.web.page_context import PageRoute
from tests.application.harness import OPERATOR, Harness
from tests.interfaces.exemptions import PAGES as THE_PAGES
from tests.interfaces.exemptions import WITHOUT_USE_CASE, exempt_from
from tests.interfaces.use_cases import noting, used_by_rest
from tests.interfaces.web.owned_objects import owned_objects_of
from tests.interfaces.web.page_client import PageClient, opened

# What fits every form; each takes what it knows.
FORM = {
    "url": "https://hooks.example.com/another",
    "host": "hooks.example.com",
    "name": "Trailer",
    "scopes": "projects:read",
    "sure": "yes",
    "to": "ready",
    "answer": "ok",
    "role": "viewer",
}
# A stream goes on until someone leaves; the list that it belongs to asks the same use case.
STREAMS = ("/settings/deliveries/live",)


async def key_of(harness: Harness, scopes: frozenset[Scope]) -> str:
    account = harness.account.id if scopes <= ACCOUNT_SCOPES else None
    made = await harness.do(
        harness.service.access.create_key, OPERATOR, account, name="test", scopes=scopes
    )
    return made.token


def _leaving(page: PageRoute) -> int:
    """What takes something away comes late, and what ends the session last."""
    return page.path.endswith("/delete") + 2 * (page.path == "/sign-out")


async def used_by_pages(page_client: PageClient) -> set[str]:
    """Every page is opened and every form sent, by the owner of what they are about."""
    used: set[str] = set()
    owned = await owned_objects_of(page_client)
    noted = replace(page_client.harness, service=noting(page_client.harness.service, used))
    owner = await replace(page_client, harness=noted).another().sign_in()
    token = owner.token()
    for page in sorted(PAGES, key=_leaving):
        path = owned.path_to(page)
        if page.get is not None and page.path not in STREAMS:
            assert (await owner.get(path)).status_code < 500, path
        if page.post is not None and not page.is_open:
            assert (await owner.post(path, _token=token, **FORM)).status_code < 500, path
    await walk_as_operator(replace(page_client, harness=noted).another())
    return used


async def walk_as_operator(operator: PageClient) -> None:
    key = await key_of(operator.harness, OPERATOR_SCOPES)
    await operator.get("/operator/sign-in")
    await operator.done("/operator/sign-in", key=key)
    # Access is closed before it is opened again.
    for page in reversed(OPERATOR_PAGES):
        path = page.path.format(account_id=operator.harness.account.id)
        if page.get is not None:
            assert (await operator.get(path)).status_code < 500, path
        if page.post is not None and not page.is_open and not path.endswith("/sign-out"):
            await operator.get("/operator")
            assert await operator.done(path)


async def test_every_use_case_of_rest_is_in_the_pages_or_is_exempt(sqlite_harness: Harness) -> None:
    page_client = opened(sqlite_harness)
    harness, offered = page_client.harness, await used_by_pages(page_client)
    by_operation = await used_by_rest(
        harness.service,
        await key_of(harness, ACCOUNT_SCOPES),
        await key_of(harness, SERVICE_SCOPES),
        await key_of(harness, OPERATOR_SCOPES),
    )
    wanted = set().union(*by_operation.values())
    assert wanted - offered == exempt_from(THE_PAGES)


def test_what_needs_no_use_case_is_a_page_as_well() -> None:
    assert {interfaces[THE_PAGES] for interfaces in WITHOUT_USE_CASE.values()} <= {
        page.path for page in PAGES
    }
