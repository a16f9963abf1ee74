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
from tests.application.world import World
from tests.doors.web.endpoints import LIST, SECRET, URL, create, created, endpoints_of
from tests.doors.web.guest import Guest, opened
from tests.support.records import Records

FILE = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)
COMPLETED_THEN = re.compile(
    r"Of the export that was completed <time [^>]*>2026-01-02 03:04:05 UTC</time>\."
)


async def test_an_endpoint_is_created_in_the_settings_and_its_secret_shown_once(
    guest: Guest,
) -> None:
    secret = await create(guest, events=["project.ready"], description="Mine")
    [view] = await endpoints_of(guest)
    assert (view.endpoint.url, view.endpoint.events) == (URL, ("project.ready",))
    assert view.keyring.current.hint == f"whsec_…{secret.rstrip('=')[-4:]}"
    for path in (LIST, f"{LIST}/{view.endpoint.id}", "/settings/audit"):
        assert secret not in (await guest.get(path)).text


async def test_a_page_that_is_sent_again_shows_the_same_secret_and_makes_no_second_endpoint(
    guest: Guest,
) -> None:
    await guest.get(f"{LIST}/new")
    fields = {"once": guest.once(), "url": URL, "_token": guest.token()}
    first, second = [(await guest.post(f"{LIST}/new", **fields)).text for _ in range(2)]
    assert SECRET.findall(first) == SECRET.findall(second) != []
    assert len(await endpoints_of(guest)) == 1


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://localhost:3000/hook", "cuepost listen"),
        ("https://hooks.example.com:8443/", "cannot be called on this port"),
        ("ftp://hooks.example.com/", "over HTTPS only"),
    ],
)
async def test_a_url_that_cannot_receive_is_refused_with_what_helps(
    guest: Guest, url: str, sentence: str
) -> None:
    await guest.get(f"{LIST}/new")
    token = guest.token()
    answer = await guest.post(f"{LIST}/new", once="x", url=url, description="kept")
    assert answer.status_code == 422
    assert sentence in answer.text
    assert 'value="kept"' in answer.text
    checked = await guest.post(f"{LIST}/check", url=url, _token=token)
    assert sentence in checked.text
    assert await endpoints_of(guest) == []


async def test_an_endpoint_is_edited_switched_and_deleted_by_its_host(guest: Guest) -> None:
    webhook_id = await created(guest)
    here = f"{LIST}/{webhook_id}"
    await guest.get(f"{here}/edit")
    await guest.done(f"{here}/edit", url="https://other.example.com/", events=["project.failed"])
    await guest.get(here)
    assert await guest.done(f"{here}/disable") == f"{here}?note=disabled"
    [view] = await endpoints_of(guest)
    assert (view.endpoint.url, view.endpoint.enabled) == ("https://other.example.com/", False)
    await guest.get(here)
    assert await guest.done(f"{here}/enable") == f"{here}?note=enabled"
    await guest.get(f"{here}/delete")
    assert (await guest.post(f"{here}/delete", host="hooks.example.com")).status_code == 422
    assert await guest.done(f"{here}/delete", host="other.example.com") == f"{LIST}?note=deleted"
    assert await endpoints_of(guest) == []


async def test_rotation_is_two_steps_then_blocked_until_the_overlap_is_ended(
    guest: Guest,
) -> None:
    webhook_id = await created(guest)
    here = f"{LIST}/{webhook_id}"
    await guest.get(f"{here}/rotate")
    token, answer = guest.token(), await guest.post(f"{here}/rotate", once=guest.once())
    assert SECRET.search(answer.text)
    assert "Rotation is blocked" in (await guest.get(f"{here}/rotate")).text
    blocked = await guest.post(f"{here}/rotate", once="another", _token=token)
    assert blocked.status_code == 409
    page = (await guest.get(here)).text
    assert "The old secret works until" in page
    assert await guest.done(f"{here}/end-overlap") == f"{here}?note=overlap-ended"
    assert "The old secret works until" not in (await guest.get(here)).text


async def test_a_test_event_is_sent_from_the_settings(guest: Guest) -> None:
    webhook_id = await created(guest)
    await guest.get(f"{LIST}/{webhook_id}")
    where = await guest.done(f"{LIST}/{webhook_id}/test")
    [delivery] = await guest.world.deliveries()
    assert where == f"{LIST}/{webhook_id}/deliveries/{delivery.id}?note=test-sent"
    assert delivery.event_type == "webhook.test"
    assert "webhook.test" in (await guest.get(where)).text


async def test_projects_are_created_in_the_application_and_moved_by_hand(guest: Guest) -> None:
    await created(guest)
    await guest.get("/settings/projects")
    where = (await guest.done("/settings/projects", name="Trailer")).partition("?")[0]
    world = guest.world
    [project] = await world.see(world.service.projects.page, world.owner, Page(5))
    assert (project.name, project.origin) == ("Trailer", Origin.APP)
    await guest.get(where)
    await guest.done(f"{where}/advance", to="completed")
    assert (await world.stored(project)).status is ProjectStatus.COMPLETED
    [delivery] = await world.deliveries()
    assert delivery.event_type == "project.completed"
    await guest.get(where)
    await guest.done(f"{where}/export")
    await guest.get(where)
    await guest.done(f"{where}/cancel")
    assert (await world.stored(project)).status is ProjectStatus.CANCELLED
    await guest.get(where)
    await guest.done(f"{where}/export")
    assert (await world.stored(project)).status is ProjectStatus.EXPORTING
    await guest.get(where)
    token = guest.token()
    assert (await guest.post(f"{where}/delete")).status_code == 422
    gone = await guest.done(f"{where}/delete", sure="yes", _token=token)
    assert gone == "/settings/projects?note=project-deleted"
    assert (await guest.get(where)).status_code == 410


async def test_the_files_of_the_last_completed_export_are_shown_with_its_time(
    guest: Guest,
) -> None:
    world, project = guest.world, await guest.world.project()
    here = f"/settings/projects/{project.id}"
    page = (await guest.get(here)).text
    assert "No export has completed yet." in page
    await world.report(world.milestone(project, artifacts=(FILE,)))
    page = (await guest.get(here)).text
    assert (COMPLETED_THEN.search(page) is not None, ">trailer.mp4</a>" in page) == (True, True)
    assert "this result stays" not in page
    assert ">Export again</button>" in page
    world.clock.advance(days=1)
    await guest.done(f"{here}/export")
    for status in ("exporting", "cancelled"):
        page = (await guest.get(here)).text
        assert f"The project is now {status}; this result stays until another" in page
        assert (COMPLETED_THEN.search(page) is not None, ">trailer.mp4</a>" in page) == (True, True)
        if status == "exporting":
            await guest.done(f"{here}/cancel")
    assert ">Export again</button>" in page


async def test_a_project_is_shown_when_its_media_store_cannot_be_reached(world: World) -> None:
    guest = await opened(replace(world, media=NO_MEDIA)).sign_in()
    project = await world.project()
    await world.report(world.milestone(project, artifacts=(FILE,)))
    page = await guest.get(f"/settings/projects/{project.id}")
    assert (page.status_code, "The media store cannot be reached now" in page.text) == (200, True)


async def test_a_project_with_access_that_has_expired_is_refused_beside_its_field(
    guest: Guest,
) -> None:
    await guest.get("/settings/projects")
    answer = await guest.post("/settings/projects", name="Trailer", expires="2020-01-01T00:00")
    assert answer.status_code == 422
    field = re.search(r'<input type="datetime-local" name="expires"[^<]*(<[^<]*)', answer.text)
    assert field is not None
    assert "Choose a time in the future." in field[1]
    world = guest.world
    assert await world.see(world.service.projects.page, world.owner, Page(5)) == []


async def test_a_project_is_renamed_and_its_access_window_moved(guest: Guest) -> None:
    world = guest.world
    ends = world.clock.now() + timedelta(days=1, milliseconds=7)
    project = await world.project(access_expires_at=ends)
    here = f"/settings/projects/{project.id}"

    async def saved(**fields: str) -> tuple[str, datetime | None]:
        await guest.get(f"{here}/edit")
        [was] = re.findall(r'name="was" value="([^"]*)"', guest.last)
        form = {"expires": was, "was": was} | fields
        assert await guest.done(f"{here}/edit", **form) == f"{here}?note=project-saved"
        found = await world.stored(project)
        return found.name, found.access_expires_at

    assert await saved(name="Teaser") == ("Teaser", ends)
    moved = datetime(2027, 1, 2, 3, 4, tzinfo=UTC)
    assert await saved(name="Teaser", expires="2027-01-02T03:04") == ("Teaser", moved)
    assert await saved(name="Teaser", expires="") == ("Teaser", None)
    await guest.get(f"{here}/edit")
    token = guest.token()
    for fields in ({"name": ""}, {"name": "a\x07b"}, {"name": "Mine", "expires": "soon"}):
        refused = await guest.post(f"{here}/edit", _token=token, **fields)
        assert refused.status_code == 422, fields
    assert (await world.stored(project)).name == "Teaser"


async def test_ending_the_access_window_stops_what_waits(guest: Guest) -> None:
    await created(guest)
    delivery = await guest.world.complete()
    here = f"/settings/projects/{delivery.project_id}"
    await guest.get(f"{here}/edit")
    await guest.done(f"{here}/edit", name="Over", expires="2020-01-01T00:00")
    [stopped] = await guest.world.deliveries()
    assert (stopped.status, stopped.reason) == ("cancelled", "project_access_expired")


async def test_a_key_is_created_shown_once_and_revoked(guest: Guest) -> None:
    await guest.get("/settings/keys")
    once, token = guest.once(), guest.token()
    fields = {"name": "CI", "scopes": ["projects:read"], "days": "30", "once": once}
    answer = await guest.post("/settings/keys", **fields)
    [key_text] = re.findall(r'id="key"[^>]*>(cpk_[^<]+)<', answer.text)
    world = guest.world
    [key] = await world.see(world.service.keys.all, world.owner)
    assert key.accepts(key_text, world.clock.now())
    assert (key.name, key.scopes) == ("CI", frozenset({Scope.PROJECTS_READ}))
    assert key.expires_at == world.clock.now() + timedelta(days=30)
    page = (await guest.get("/settings/keys")).text
    assert key_text not in page
    await guest.done(f"/settings/keys/{key.id}/revoke")
    assert "revoked" in (await guest.get("/settings/keys")).text
    refused = await guest.post("/settings/keys", name="", once="y", _token=token)
    assert refused.status_code == 422


async def test_a_waiting_secret_is_shown_once_by_a_button(guest: Guest) -> None:
    world = guest.world
    made = await world.endpoint()
    offer = await world.do(world.service.reveals.offer, world.owner, made)
    for _ in range(2):
        looked = await guest.get(offer.url)
        assert made.secret.reveal() not in looked.text
    shown = await guest.post(offer.url)
    assert SECRET.findall(shown.text) == [made.secret.reveal()]
    assert (await guest.get(offer.url)).status_code == 404


async def test_the_inbox_is_opened_told_how_to_answer_and_emptied(guest: Guest) -> None:
    where = (await guest.get("/settings/inbox")).headers["location"]
    assert "Nothing has arrived yet" in (await guest.get(where)).text
    assert (
        await guest.done(f"{where}/answer", answer="server_error") == f"{where}?note=inbox-answer"
    )
    world = guest.world
    message = Records(world.clock, world.ids).inbox_message(
        world.account.id, body=b"<script>alert(1)</script>"
    )
    await world.do(lambda t: t.inboxes.keep(message, 9))
    page = (await guest.get(where)).text
    assert "signature fits" in page
    assert "<script>alert" not in page
    await guest.done(f"{where}/clear")
    assert "Nothing has arrived yet" in (await guest.get(where)).text


async def test_the_catalogue_shows_every_event_with_sample_and_schema(guest: Guest) -> None:
    page = unescape((await guest.get("/settings/event-types")).text)
    for name in ("project.completed", "project.failed", "project.ready", "webhook.test"):
        assert f'"type": "{name}"' in page
        assert json.dumps({"const": name})[1:-1] in page
