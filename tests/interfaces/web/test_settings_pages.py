"""What people do in the pages, as plain forms: every action works without JavaScript."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

from cuepost.domain.access import Scope
from cuepost.domain.artifact import Artifact
from cuepost.domain.project import Origin, ProjectStatus
from cuepost.ports.media import NO_MEDIA
from cuepost.ports.records import Page
from tests.application.harness import Harness
from tests.interfaces.web.endpoints import LIST, SECRET, URL, create, created, endpoints_of
from tests.interfaces.web.page_client import PageClient, opened
from tests.support.records import Records

FILE = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)
COMPLETED_THEN = re.compile(r"From the export completed <time [^>]*>2026-01-02 03:04:05</time>\.")


async def test_an_endpoint_is_created_in_the_settings_and_its_secret_shown_once(
    page_client: PageClient,
) -> None:
    secret = await create(page_client, events=["project.ready"], description="Mine")
    [view] = await endpoints_of(page_client)
    assert (view.endpoint.url, view.endpoint.events) == (URL, ("project.ready",))
    assert view.keyring.current.hint == f"whsec_…{secret.rstrip('=')[-4:]}"
    for path in (LIST, f"{LIST}/{view.endpoint.id}", "/settings/audit"):
        assert secret not in (await page_client.get(path)).text


async def test_a_page_that_is_sent_again_shows_the_same_secret_and_makes_no_second_endpoint(
    page_client: PageClient,
) -> None:
    await page_client.get(f"{LIST}/new")
    fields = {"once": page_client.once(), "url": URL, "_token": page_client.token()}
    first, second = [(await page_client.post(f"{LIST}/new", **fields)).text for _ in range(2)]
    assert SECRET.findall(first) == SECRET.findall(second) != []
    assert len(await endpoints_of(page_client)) == 1


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://localhost:3000/hook", "cuepost listen"),
        ("https://hooks.example.com:8443/", "cannot be called on this port"),
        ("ftp://hooks.example.com/", "over HTTPS only"),
    ],
)
async def test_a_url_that_cannot_receive_is_refused_with_what_helps(
    page_client: PageClient, url: str, sentence: str
) -> None:
    await page_client.get(f"{LIST}/new")
    token = page_client.token()
    answer = await page_client.post(f"{LIST}/new", once="x", url=url, description="kept")
    assert answer.status_code == 422
    assert sentence in answer.text
    assert 'value="kept"' in answer.text
    checked = await page_client.post(f"{LIST}/check", url=url, _token=token)
    assert sentence in checked.text
    assert await endpoints_of(page_client) == []


async def test_an_endpoint_is_edited_switched_and_deleted_by_its_host(
    page_client: PageClient,
) -> None:
    webhook_id = await created(page_client)
    here = f"{LIST}/{webhook_id}"
    await page_client.get(f"{here}/edit")
    await page_client.done(
        f"{here}/edit", url="https://other.example.com/", events=["project.failed"]
    )
    await page_client.get(here)
    assert await page_client.done(f"{here}/disable") == f"{here}?note=disabled"
    [view] = await endpoints_of(page_client)
    assert (view.endpoint.url, view.endpoint.enabled) == ("https://other.example.com/", False)
    await page_client.get(here)
    assert await page_client.done(f"{here}/enable") == f"{here}?note=enabled"
    await page_client.get(f"{here}/delete")
    assert (await page_client.post(f"{here}/delete", host="hooks.example.com")).status_code == 422
    assert (
        await page_client.done(f"{here}/delete", host="other.example.com") == f"{LIST}?note=deleted"
    )
    assert await endpoints_of(page_client) == []


async def test_rotation_is_two_steps_then_blocked_until_the_overlap_is_ended(
    page_client: PageClient,
) -> None:
    webhook_id = await created(page_client)
    here = f"{LIST}/{webhook_id}"
    await page_client.get(f"{here}/rotate")
    token, answer = (
        page_client.token(),
        await page_client.post(f"{here}/rotate", once=page_client.once()),
    )
    assert SECRET.search(answer.text)
    assert "Rotation is blocked" in (await page_client.get(f"{here}/rotate")).text
    blocked = await page_client.post(f"{here}/rotate", once="another", _token=token)
    assert blocked.status_code == 409
    page = (await page_client.get(f"{here}/secret")).text
    assert "The old secret works until" in page
    assert await page_client.done(f"{here}/end-overlap") == f"{here}/secret?note=overlap-ended"
    assert "The old secret works until" not in (await page_client.get(f"{here}/secret")).text


async def test_a_test_event_is_sent_from_the_settings(page_client: PageClient) -> None:
    webhook_id = await created(page_client)
    await page_client.get(f"{LIST}/{webhook_id}")
    where = await page_client.done(f"{LIST}/{webhook_id}/test")
    [delivery] = await page_client.harness.deliveries()
    assert where == f"{LIST}/{webhook_id}/deliveries/{delivery.id}?note=test-sent"
    assert delivery.event_type == "webhook.test"
    assert "webhook.test" in (await page_client.get(where)).text


async def test_projects_are_created_in_the_application_and_moved_by_hand(
    page_client: PageClient,
) -> None:
    await created(page_client)
    await page_client.get("/settings/projects")
    where = (await page_client.done("/settings/projects", name="Trailer")).partition("?")[0]
    harness = page_client.harness
    [project] = await harness.see(harness.service.projects.page, harness.owner, Page(5))
    assert (project.name, project.origin) == ("Trailer", Origin.APP)
    await page_client.get(where)
    await page_client.done(f"{where}/advance", to="completed")
    assert (await harness.stored(project)).status is ProjectStatus.COMPLETED
    [delivery] = await harness.deliveries()
    assert delivery.event_type == "project.completed"
    await page_client.get(where)
    await page_client.done(f"{where}/export")
    await page_client.get(where)
    await page_client.done(f"{where}/cancel")
    assert (await harness.stored(project)).status is ProjectStatus.CANCELLED
    await page_client.get(where)
    await page_client.done(f"{where}/export")
    assert (await harness.stored(project)).status is ProjectStatus.EXPORTING
    await page_client.get(where)
    token = page_client.token()
    assert (await page_client.post(f"{where}/delete")).status_code == 422
    gone = await page_client.done(f"{where}/delete", sure="yes", _token=token)
    assert gone == "/settings/projects?note=project-deleted"
    assert (await page_client.get(where)).status_code == 410


async def test_the_files_of_the_last_completed_export_are_shown_with_its_time(
    page_client: PageClient,
) -> None:
    harness, project = page_client.harness, await page_client.harness.project()
    here = f"/settings/projects/{project.id}"
    page = (await page_client.get(here)).text
    assert "No export has completed yet." in page
    await harness.report(harness.milestone(project, artifacts=(FILE,)))
    page = (await page_client.get(here)).text
    assert (COMPLETED_THEN.search(page) is not None, ">trailer.mp4</a>" in page) == (True, True)
    assert "this result stays" not in page
    assert ">Export again</button>" in page
    harness.clock.advance(days=1)
    await page_client.done(f"{here}/export")
    for status in ("exporting", "cancelled"):
        page = (await page_client.get(here)).text
        assert f"The project is now {status}; this result stays until another" in page
        assert (COMPLETED_THEN.search(page) is not None, ">trailer.mp4</a>" in page) == (True, True)
        if status == "exporting":
            await page_client.done(f"{here}/cancel")
    assert ">Export again</button>" in page


async def test_a_project_is_shown_when_its_media_store_cannot_be_reached(harness: Harness) -> None:
    page_client = await opened(replace(harness, media=NO_MEDIA)).sign_in()
    project = await harness.project()
    await harness.report(harness.milestone(project, artifacts=(FILE,)))
    page = await page_client.get(f"/settings/projects/{project.id}")
    assert (page.status_code, "The media store is unavailable" in page.text) == (200, True)


async def test_a_project_with_access_that_has_expired_is_refused_beside_its_field(
    page_client: PageClient,
) -> None:
    await page_client.get("/settings/projects")
    answer = await page_client.post(
        "/settings/projects", name="Trailer", expires="2020-01-01T00:00"
    )
    assert answer.status_code == 422
    field = re.search(r'<input type="datetime-local" name="expires"[^<]*(<[^<]*)', answer.text)
    assert field is not None
    assert "Choose a time in the future." in field[1]
    harness = page_client.harness
    assert await harness.see(harness.service.projects.page, harness.owner, Page(5)) == []


async def test_a_project_is_renamed_and_its_access_window_moved(page_client: PageClient) -> None:
    harness = page_client.harness
    ends = harness.clock.now() + timedelta(days=1, milliseconds=7)
    project = await harness.project(access_expires_at=ends)
    here = f"/settings/projects/{project.id}"

    async def saved(**fields: str) -> tuple[str, datetime | None]:
        await page_client.get(f"{here}/edit")
        [was] = re.findall(r'name="was" value="([^"]*)"', page_client.last)
        form = {"expires": was, "was": was} | fields
        assert await page_client.done(f"{here}/edit", **form) == f"{here}?note=project-saved"
        found = await harness.stored(project)
        return found.name, found.access_expires_at

    assert await saved(name="Teaser") == ("Teaser", ends)
    moved = datetime(2027, 1, 2, 3, 4, tzinfo=UTC)
    assert await saved(name="Teaser", expires="2027-01-02T03:04") == ("Teaser", moved)
    assert await saved(name="Teaser", expires="") == ("Teaser", None)
    await page_client.get(f"{here}/edit")
    token = page_client.token()
    for fields in ({"name": ""}, {"name": "a\x07b"}, {"name": "Mine", "expires": "soon"}):
        refused = await page_client.post(f"{here}/edit", _token=token, **fields)
        assert refused.status_code == 422, fields
    assert (await harness.stored(project)).name == "Teaser"


async def test_ending_the_access_window_stops_what_waits(page_client: PageClient) -> None:
    await created(page_client)
    delivery = await page_client.harness.complete()
    here = f"/settings/projects/{delivery.project_id}"
    await page_client.get(f"{here}/edit")
    await page_client.done(f"{here}/edit", name="Over", expires="2020-01-01T00:00")
    [stopped] = await page_client.harness.deliveries()
    assert (stopped.status, stopped.reason) == ("cancelled", "project_access_expired")


async def test_a_key_is_created_shown_once_and_revoked(page_client: PageClient) -> None:
    await page_client.get("/settings/keys")
    once, token = page_client.once(), page_client.token()
    fields = {"name": "CI", "scopes": ["projects:read"], "days": "30", "once": once}
    answer = await page_client.post("/settings/keys", **fields)
    [key_text] = re.findall(r'id="key"[^>]*>(cpk_[^<]+)<', answer.text)
    harness = page_client.harness
    [key] = await harness.see(harness.service.keys.all, harness.owner)
    assert key.accepts(key_text, harness.clock.now())
    assert (key.name, key.scopes) == ("CI", frozenset({Scope.PROJECTS_READ}))
    assert key.expires_at == harness.clock.now() + timedelta(days=30)
    page = (await page_client.get("/settings/keys")).text
    assert key_text not in page
    await page_client.done(f"/settings/keys/{key.id}/revoke")
    assert "revoked" in (await page_client.get("/settings/keys")).text
    refused = await page_client.post("/settings/keys", name="", once="y", _token=token)
    assert refused.status_code == 422


async def test_a_waiting_secret_is_shown_once_by_a_button(page_client: PageClient) -> None:
    harness = page_client.harness
    made = await harness.endpoint()
    offer = await harness.do(harness.service.reveals.offer, harness.owner, made)
    for _ in range(2):
        looked = await page_client.get(offer.url)
        assert made.secret.reveal() not in looked.text
    shown = await page_client.post(offer.url)
    assert SECRET.findall(shown.text) == [made.secret.reveal()]
    assert (await page_client.get(offer.url)).status_code == 404


async def test_the_inbox_is_opened_told_how_to_answer_and_emptied(page_client: PageClient) -> None:
    where = (await page_client.get("/settings/inbox")).headers["location"]
    assert "No messages yet" in (await page_client.get(where)).text
    assert (
        await page_client.done(f"{where}/answer", answer="server_error")
        == f"{where}?note=inbox-answer"
    )
    harness = page_client.harness
    message = Records(harness.clock, harness.ids).inbox_message(
        harness.account.id, body=b"<script>alert(1)</script>"
    )
    await harness.do(lambda t: t.inboxes.keep(message, 9))
    page = (await page_client.get(where)).text
    assert "signature valid" in page
    assert "<script>alert" not in page
    await page_client.done(f"{where}/clear")
    assert "No messages yet" in (await page_client.get(where)).text


async def test_the_catalogue_shows_every_event_with_sample_and_schema(
    page_client: PageClient,
) -> None:
    shown = (await page_client.get("/settings/event-types")).text
    page = unescape(re.sub(r"</?span[^>]*>", "", shown))
    for name in ("project.completed", "project.failed", "project.ready", "webhook.test"):
        assert f'"type": "{name}"' in page
        assert json.dumps({"const": name})[1:-1] in page


async def test_an_empty_account_starts_with_the_test_inbox(page_client: PageClient) -> None:
    page = (await page_client.get(LIST)).text
    first, second = re.findall(r'<a href="([^"]+)" class="button[^"]*">', page)
    assert (first, second) == (f"{LIST}/new?inbox=1", f"{LIST}/new")
    form = (await page_client.get(first)).text
    harness = page_client.harness
    inbox = await harness.do(harness.service.inbox.mine, harness.owner)
    assert f'value="{harness.service.inbox.address(inbox.token)}"' in form


@pytest.mark.parametrize("description", ["x" * 501, "bell \x07"])
async def test_descriptions_have_the_limits_of_rest(
    page_client: PageClient, description: str
) -> None:
    await page_client.get(f"{LIST}/new")
    fields = {"url": "https://hooks.example.com/", "description": description}
    answer = await page_client.post(f"{LIST}/new", once="x", **fields)
    assert answer.status_code == 422
    assert await endpoints_of(page_client) == []
    here = f"{LIST}/{await created(page_client)}/edit"
    await page_client.get(here)
    answer = await page_client.post(here, events=["project.ready"], **fields)
    assert answer.status_code == 422
    [view] = await endpoints_of(page_client)
    assert view.endpoint.description == ""


async def test_a_key_has_a_name_of_one_line(page_client: PageClient) -> None:
    await page_client.get("/settings/keys")
    fields = {"name": "one\ntwo", "scopes": ["webhooks:read"], "once": page_client.once()}
    answer = await page_client.post("/settings/keys", **fields)
    assert answer.status_code == 422
    assert "line breaks are not allowed" in answer.text
