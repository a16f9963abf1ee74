"""The operator's pages: sign-in by key, what they show, what they change, and to whom."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import httpx2
import pytest

from cuepost.application.perform import OPERATOR as OPERATOR_ID
from cuepost.domain.access import (
    ACCOUNT_SCOPES,
    OPERATOR_SCOPES,
    SERVICE_SCOPES,
    Account,
    ApiKey,
    Scope,
)
from cuepost.domain.attempt import Outcome
from cuepost.domain.audit import Action
from cuepost.domain.delivery import DeliveryStatus as S
from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.interfaces.web.app import OPERATOR_PAGES, create_pages
from cuepost.interfaces.web.page_context import PageRoute
from cuepost.ports.records import Page
from tests.application.harness import BASE_URL, OPERATOR, Harness
from tests.interfaces.web.page_client import PageClient
from tests.interfaces.web.test_overview import tiles

COOKIE = "__Secure-cuepost-operator"
NEEDS_SESSION = [page for page in OPERATOR_PAGES if not page.is_open]
EVERYTHING = Page(100)
HOST = replace(OPERATOR, scopes=OPERATOR_SCOPES)


async def key_with(
    harness: Harness,
    scopes: frozenset[Scope] = OPERATOR_SCOPES,
    account_id: UUID | None = None,
    life: timedelta | None = None,
) -> tuple[ApiKey, str]:
    expires_at = None if life is None else harness.clock.now() + life
    made = await harness.do(
        harness.service.access.create_key,
        OPERATOR,
        account_id,
        name="On call",
        scopes=scopes,
        expires_at=expires_at,
    )
    return made.key, made.token


async def signed_in(client: PageClient, token: str) -> PageClient:
    await client.get("/operator/sign-in")
    assert await client.done("/operator/sign-in", key=token) == "/operator"
    await client.get("/operator")
    return client


@pytest.fixture
async def operator(stranger: PageClient) -> PageClient:
    return await signed_in(stranger, (await key_with(stranger.harness))[1])


def path_to(page: PageRoute, harness: Harness) -> str:
    return page.path.format(account_id=harness.account.id)


async def trail(harness: Harness, account_id: UUID) -> list[tuple[Action, str, str | None]]:
    found = await harness.see(lambda t: t.audit.page(account_id, EVERYTHING))
    return [(each.action, each.actor, each.address) for each in found]


async def test_an_operator_signs_in_with_a_key_and_out_again(stranger: PageClient) -> None:
    harness = stranger.harness
    key, token = await key_with(harness, frozenset({Scope.ACCOUNTS_READ}))
    await stranger.get("/operator/sign-in")
    answer = await stranger.post("/operator/sign-in", key=f" {token} ")
    assert (answer.status_code, answer.headers["location"]) == (303, "/operator")
    [cookie] = [
        each for each in answer.headers.get_list("set-cookie") if each.startswith(f"{COOKIE}=")
    ]
    for part in ("HttpOnly", "Secure", "SameSite=strict", "Path=/operator", "Max-Age=43200"):
        assert part in cookie
    page = await stranger.get("/operator")
    assert page.status_code == 200
    assert "On call" in page.text
    assert (await stranger.get("/operator/sign-in")).headers["location"] == "/operator"
    await stranger.get("/operator/accounts")
    kept = dict(stranger.client.cookies)
    assert await stranger.done("/operator/sign-out") == "/operator/sign-in"
    stranger.client.cookies.update(kept)
    answer = await stranger.get("/operator")
    assert answer.headers["location"] == "/operator/sign-in?next=/operator"
    actor = f"key:{key.id}"
    assert (await trail(harness, OPERATOR_ID))[:2] == [
        (Action.SIGNED_OUT, actor, "192.0.2.7"),
        (Action.SIGNED_IN, actor, "192.0.2.7"),
    ]


@pytest.mark.parametrize("path", [page.path for page in NEEDS_SESSION])
async def test_no_other_session_or_key_opens_an_operators_page(
    stranger: PageClient, path: str
) -> None:
    """The session of a member, also as the operator's cookie, and keys as cookies or headers."""
    harness = stranger.harness
    [page] = [each for each in NEEDS_SESSION if each.path == path]
    where = path_to(page, harness)
    member = await stranger.another().sign_in()
    session = member.client.cookies["__Host-cuepost"]
    keys = [
        (await key_with(harness, ACCOUNT_SCOPES, harness.account.id))[1],
        (await key_with(harness, SERVICE_SCOPES))[1],
        (await key_with(harness))[1],
    ]
    before = await harness.dump()
    for value in (None, session, *keys):
        headers = {} if value is None else {"cookie": f"{COOKIE}={value}; __Host-cuepost={session}"}
        if value in keys:
            headers["authorization"] = f"Bearer {value}"
        member.client.cookies.clear()
        if page.get is not None:
            answer = await member.client.get(where, headers=headers)
            expected = f"/operator/sign-in?next={where}"
            assert (answer.status_code, answer.headers["location"]) == (303, expected)
            assert answer.content == b""
        else:
            answer = await member.client.post(where, data={"_token": member.token()})
            assert answer.status_code == 403
    assert await harness.dump() == before


@pytest.mark.parametrize("kind", ["account", "service", "portal", "revoked", "expired", "nonsense"])
async def test_only_a_usable_operator_key_signs_in(stranger: PageClient, kind: str) -> None:
    harness, life = stranger.harness, timedelta(minutes=1)
    key, token = {
        "account": await key_with(harness, ACCOUNT_SCOPES, harness.account.id),
        "service": await key_with(harness, SERVICE_SCOPES),
        "portal": await key_with(harness, frozenset({Scope.PORTAL_CREATE})),
        "revoked": await key_with(harness),
        "expired": await key_with(harness, life=life),
        "nonsense": (None, "cpk_nonsense"),
    }[kind]
    if kind == "revoked":
        assert key is not None
        await harness.do(harness.service.access.revoke_key, OPERATOR, key.id)
    if kind == "expired":
        harness.clock.advance(61)
    await stranger.get("/operator/sign-in")
    answer = await stranger.post("/operator/sign-in", key=token)
    assert answer.status_code == 401
    assert "This is not a valid operator key" in answer.text
    assert token not in answer.text
    assert COOKIE not in stranger.client.cookies
    if key is not None:
        [(action, actor, _), *_] = await trail(harness, key.account_id or OPERATOR_ID)
        assert (action, actor) == (Action.SIGN_IN_REFUSED, f"key:{key.id}")


async def test_sign_ins_are_limited_per_key(stranger: PageClient) -> None:
    _, token = await key_with(stranger.harness)
    wrong = token[:-1] + ("A" if token[-1] != "A" else "B")
    await stranger.get("/operator/sign-in")
    for _ in range(10):
        answer = await stranger.post("/operator/sign-in", key=wrong)
        assert answer.status_code == 401
    answer = await stranger.post("/operator/sign-in", key=token)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 900


async def test_a_session_ends_with_its_key(stranger: PageClient) -> None:
    harness = stranger.harness
    key, token = await key_with(harness)
    _, brief = await key_with(harness, life=timedelta(hours=1))
    other = await signed_in(stranger.another(), brief)
    operator = await signed_in(stranger, token)
    await harness.do(harness.service.access.revoke_key, OPERATOR, key.id)
    assert (await operator.get("/operator")).status_code == 303
    answer = await operator.get("/operator", headers={"hx-request": "true"})
    assert answer.headers["hx-redirect"] == "/operator/sign-in"
    assert (await other.get("/operator")).status_code == 200
    harness.clock.advance(3_600)
    assert (await other.get("/operator")).status_code == 303


async def test_a_session_lasts_half_a_day(operator: PageClient) -> None:
    operator.harness.clock.advance(hours=11, minutes=59)
    assert (await operator.get("/operator")).status_code == 200
    operator.harness.clock.advance(minutes=1)
    assert (await operator.get("/operator")).status_code == 303


@pytest.mark.parametrize(
    ("wanted", "leads_to"),
    [
        ("/operator/accounts?q=a", "/operator/accounts?q=a"),
        ("/operator?range=7d", "/operator?range=7d"),
        ("/settings", "/operator"),
        ("//evil.example/operator", "/operator"),
        ("/operators", "/operator"),
        ("", "/operator"),
    ],
)
async def test_a_sign_in_leads_to_operators_pages_alone(
    stranger: PageClient, wanted: str, leads_to: str
) -> None:
    _, token = await key_with(stranger.harness)
    await stranger.get("/operator/sign-in")
    assert await stranger.done("/operator/sign-in", key=token, next=wanted) == leads_to


async def test_the_session_of_an_operator_opens_no_page_of_an_account(
    operator: PageClient,
) -> None:
    token = operator.client.cookies[COOKIE]
    answer = await operator.another().client.get(
        "/settings", headers={"cookie": f"__Host-cuepost={token}"}
    )
    assert answer.headers["location"] == "/sign-in?next=/settings"


async def test_the_overview_shows_whether_the_service_delivers(operator: PageClient) -> None:
    harness = operator.harness
    assert "No worker has a lease" in (await operator.get("/operator")).text
    now, worker = harness.clock.now(), harness.ids(harness.clock.now())
    await harness.do(lambda t: t.queue.register_worker(worker, now + timedelta(hours=1)))
    webhook_id = (await harness.endpoint()).view.endpoint.id
    await harness.complete_to(webhook_id)
    page = (await operator.get("/operator")).text
    assert "what is due is sent" in page
    assert str(worker) in page
    shown = tiles(page)
    assert (shown["Due now"], shown["Pending"], shown["In flight"]) == ("1", "1", "0")
    harness.clock.advance(90)
    page = (await operator.get("/operator")).text
    assert "a delivery has been due for 1 m 30 s" in page
    assert tiles(page)["Oldest due"] == "1 m 30 s"
    assert f'<a href="/operator/accounts/{harness.account.id}">{harness.account.name}</a>' in page


async def test_the_overview_adds_up_all_accounts(operator: PageClient) -> None:
    harness = operator.harness
    await harness.endpoint()
    for _ in range(5):
        await harness.end(await harness.complete(), S.DELIVERED)
    other = await harness.new_owner()
    webhook = await harness.do(
        harness.service.webhooks.create, other, "https://other.example.com/secret-path", (), ""
    )
    sent = await harness.do(harness.service.webhooks.send_test, other, webhook.view.endpoint.id)
    [delivery] = await harness.deliveries(other)
    assert sent is not None
    await harness.record(delivery, S.FAILED, outcome=Outcome.TIMEOUT)
    harness.clock.advance(minutes=5)
    page = (await operator.get("/operator")).text
    figures = page.partition("<h2>Deliveries</h2>")[2]
    assert (tiles(figures)["Delivered"], tiles(figures)["Failed"]) == ("5", "1")
    assert tiles(page)["Deliveries per minute"] == "1.2"
    assert "other.example.com" in page
    assert "secret-path" not in page
    failing = page.partition('aria-label="List of failing endpoints"')[2].partition("</table>")[0]
    assert f"/operator/accounts/{other.account}" in failing
    assert 'class="pill pill-failing"' in failing


async def test_beyond_the_limit_the_overview_says_what_it_counts(
    operator: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = operator.harness
    await harness.endpoint()
    for _ in range(3):
        await harness.end(await harness.complete(), S.DELIVERED)
        harness.clock.advance(minutes=5)
    page = (await operator.get("/operator")).text
    assert "only deliveries since" not in page
    monkeypatch.setattr("cuepost.adapters.storage.records.service_state.COUNTS_READ", 2)
    page = (await operator.get("/operator")).text
    assert "only deliveries since" in page
    assert tiles(page.partition("<h2>Deliveries</h2>")[2])["Delivered"] == "1"
    assert tiles(page)["Deliveries per minute"] == "0.2"
    monkeypatch.setattr("cuepost.adapters.storage.records.service_state.COUNTS_READ", 1)
    page = (await operator.get("/operator?range=24h")).text
    assert tiles(page)["Deliveries per minute"] == "0.2 or more"


async def test_the_overview_names_what_health_checks_find(operator: PageClient) -> None:
    harness = operator.harness
    pages = create_pages(harness.service, base_url=BASE_URL, dispatcher=lambda: "stalled: no claim")
    health = HealthChecks(harness.store.check)
    app = create_app(harness.service, base_url=BASE_URL, health=health, further_routes=pages)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE_URL) as client:
        cookie = f"{COOKIE}={operator.client.cookies[COOKIE]}"
        page = await client.get("/operator", headers={"cookie": cookie})
    assert "stalled: no claim" in page.text


async def test_accounts_are_paged_and_searched(operator: PageClient) -> None:
    harness = operator.harness
    for number in range(60):
        await harness.do(
            harness.service.accounts.create,
            HOST,
            name=f"Studio {number:02}",
            external_id=f"cust_{number:02}",
        )
    first = (await operator.get("/operator/accounts")).text
    assert first.count('data-label="Name"') == 50
    further = first.partition('<p class="pager"><a href="')[2].partition('"')[0]
    second = (await operator.get(further.replace("&amp;", "&"))).text
    assert second.count('data-label="Name"') == 11
    by_name = (await operator.get("/operator/accounts?q=STUDIO 5&by=name")).text
    assert by_name.count('data-label="Name"') == 10
    by_id = (await operator.get("/operator/accounts?q=cust_07&by=external_id")).text
    assert by_id.count('data-label="Name"') == 1
    assert "Studio 07" in by_id
    nothing = (await operator.get("/operator/accounts?q=nothing")).text
    assert "No account found" in nothing
    odd = await operator.get("/operator/accounts?q=%00&by=nonsense")
    assert (odd.status_code, "No account found" in odd.text) == (200, True)
    assert (await operator.get("/operator/accounts?cursor=nonsense")).status_code == 422


async def test_the_list_shows_health_and_volume(operator: PageClient) -> None:
    harness = operator.harness
    await harness.endpoint()
    await harness.end(await harness.complete(), S.DELIVERED)
    await harness.record(await harness.complete(), S.RETRYING, outcome=Outcome.TIMEOUT)
    page = (await operator.get("/operator/accounts")).text
    row = page.partition(str(harness.account.id))[0].rpartition("<tr>")[2]
    assert 'class="pill pill-degraded"' in row
    assert '<td data-label="Delivered, 24 hours">1</td>' in page


async def test_an_account_has_its_figures_keys_members_and_trail(operator: PageClient) -> None:
    harness = operator.harness
    await harness.endpoint()
    await harness.end(await harness.complete(), S.DELIVERED)
    await key_with(harness, ACCOUNT_SCOPES, harness.account.id)
    await operator.another().sign_in()
    here = f"/operator/accounts/{harness.account.id}"
    page = (await operator.get(here)).text
    assert tiles(page)["Delivered"] == "1"
    for shown in ("hooks.example.com", "On call", "No e-mail yet", f"{here}/audit"):
        assert shown in page
    entries = (await operator.get(f"{here}/audit")).text
    assert "signed in by" in entries
    assert "/settings/" not in entries.partition("<main")[2].partition("</main>")[0]
    for unknown in (f"/operator/accounts/{OPERATOR_ID}", "/operator/accounts/nonsense"):
        for suffix in ("", "/audit"):
            answer = await operator.get(unknown + suffix)
            assert answer.status_code == 404
            assert "There is no such" in answer.text
            assert 'href="/operator/accounts" class="button' in answer.text


async def access_of(harness: Harness) -> bool:
    account: Account | None = await harness.see(lambda t: t.accounts.get(harness.account.id))
    assert account is not None
    return account.webhooks_enabled


async def test_access_is_closed_and_opened_and_both_trails_say_so(operator: PageClient) -> None:
    harness, here = operator.harness, f"/operator/accounts/{operator.harness.account.id}"
    await harness.endpoint()
    await harness.complete()
    await operator.get(here)
    assert await operator.done(f"{here}/close-access") == f"{here}?note=access-closed"
    assert not await access_of(harness)
    assert [each.status for each in await harness.deliveries()] == [S.CANCELLED]
    page = (await operator.get(f"{here}?note=access-closed")).text
    assert "Access to webhooks is closed" in page
    overview = (await operator.get("/operator")).text
    assert "The newest with closed access" in overview
    assert harness.account.name in overview
    await operator.get(here)
    assert await operator.done(f"{here}/open-access") == f"{here}?note=access-opened"
    assert await access_of(harness)
    for account_id in (OPERATOR_ID, harness.account.id):
        actions = [action for action, *_ in await trail(harness, account_id)]
        assert actions[:2] == [Action.ACCESS_OPENED, Action.ACCESS_CLOSED]
    own = (await operator.get("/operator/audit")).text
    assert f'<a href="{here}">{harness.account.name}</a>' in own


async def test_a_key_that_only_reads_changes_no_access(stranger: PageClient) -> None:
    harness = stranger.harness
    _, token = await key_with(harness, frozenset({Scope.ACCOUNTS_READ}))
    reader, here = await signed_in(stranger, token), f"/operator/accounts/{harness.account.id}"
    page = (await reader.get(here)).text
    assert "Close access" not in page
    await reader.get("/operator")
    assert (await reader.post(f"{here}/close-access")).status_code == 403
    assert await access_of(harness)


async def test_an_erased_account_can_be_watched_but_not_changed(operator: PageClient) -> None:
    harness, here = operator.harness, f"/operator/accounts/{operator.harness.account.id}"
    await harness.do(harness.service.accounts.erase, HOST, harness.account.id)
    page = (await operator.get(here)).text
    assert "is being erased" in page
    assert "Open access" not in page
    assert (await operator.post(f"{here}/open-access")).status_code == 409
    assert "erasing</span>" in (await operator.get("/operator/accounts")).text


async def test_forms_need_the_token_of_this_session(operator: PageClient) -> None:
    here = f"/operator/accounts/{operator.harness.account.id}/close-access"
    await operator.get("/operator")
    other = await signed_in(operator.another(), (await key_with(operator.harness))[1])
    assert (await operator.post(here, _token=other.token())).status_code == 403
    operator.sent = {"origin": "https://evil.example"}
    assert (await operator.post(here)).status_code == 403
    assert await access_of(operator.harness)


async def test_the_theme_is_chosen_here_as_well(operator: PageClient) -> None:
    await operator.get("/operator/accounts")
    there = await operator.done("/operator/theme", theme="dark", next="/operator/accounts")
    assert there == "/operator/accounts"
    assert 'data-theme="dark"' in (await operator.get("/operator")).text


async def test_the_pages_can_be_switched_off(operator: PageClient) -> None:
    harness = operator.harness
    pages = create_pages(harness.service, base_url=BASE_URL, for_operators=False)
    health = HealthChecks(harness.store.check)
    app = create_app(harness.service, base_url=BASE_URL, health=health, further_routes=pages)
    cookie = f"{COOKIE}={operator.client.cookies[COOKIE]}"
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE_URL) as client:
        for page in OPERATOR_PAGES:
            where = path_to(page, harness)
            headers = {"accept": "text/html", "cookie": cookie}
            assert (await client.get(where, headers=headers)).status_code == 404
            assert (await client.post(where, headers=headers)).status_code in (404, 405)
