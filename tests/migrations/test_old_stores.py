"""A store that an earlier release has left goes on under this one as if nothing had happened."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from alembic.script import ScriptDirectory

from cuepost.adapters.storage import schema
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.system_clock import SystemClock
from tests.e2e.first_steps import WELL, ApiUser, Keys, health, request
from tests.migrations import old_values as old
from tests.migrations.conftest import HEAD, Database
from tests.migrations.old_store import OldStore
from tests.migrations.test_upgrading import upgrade_to
from tests.support.history_checker import Seen, signature_fits
from tests.support.postgres import fresh_database_sync
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import PATIENCE_SECONDS, Ended, ServiceProcess, free_port, run

# The first has no deliveries yet, and from 0007 on they have the form of today; test_upgrading.py
# has what changed since. Every one between has to be here.
REVISIONS = ["0002", "0003", "0004", "0005", "0006"]
SINCE = [
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0015",
    "0016",
    "0017",
    "0018",
    "0019",
    "0023",
    "0024",
    "0025",
    "0026",
    "0027",
    "0028",
    "0029",
    "0030",
]
NEWEST = "0031"
LIVE = {"pending", "retrying", "delivering"}


@pytest.fixture
def receiver() -> Iterator[RecordingReceiver]:
    with RecordingReceiver() as receiver:
        yield receiver


@pytest.fixture
def settings(tmp_path: Path, receiver: RecordingReceiver) -> dict[str, str]:
    (tmp_path / "data").mkdir()
    return {
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": str(free_port()),
        "MASTER_KEY": old.MASTER_KEY,
        "RECEIVER_HTTP": "true",
        "RECEIVER_NETWORKS": "127.0.0.0/8",
        "RECEIVER_PORTS": str(receiver.port),
    }


@pytest.fixture
def store(receiver: RecordingReceiver) -> OldStore:
    return OldStore(SystemClock().now(), receiver.url("/hook"))


def made_by_a_release_with(revision: str, store: OldStore, database: Database) -> Database:
    async def make() -> None:
        await database.do(lambda connection: upgrade_to(revision, connection))
        if database.url.startswith("postgresql"):
            server = PostgresStore(database.url)
            await server.prepare_days(store.now)
            await server.close()
        await database.do(store.fill)

    asyncio.run(make())
    return database


def test_every_release_is_tried() -> None:
    known = sorted(
        each.revision for each in ScriptDirectory(str(schema.MIGRATIONS)).walk_revisions()
    )
    assert known == ["0001", *REVISIONS, *SINCE, NEWEST]
    assert NEWEST == HEAD


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_embedded_store_is_upgraded_by_its_start(
    revision: str, store: OldStore, settings: dict[str, str], receiver: RecordingReceiver
) -> None:
    file = Path(settings["DATA_DIR"]) / "cuepost.sqlite3"
    database = made_by_a_release_with(revision, store, Database(f"sqlite:///{file}"))
    with ServiceProcess(settings) as service:
        assert asyncio.run(database.revision()) == HEAD
        everything_goes_on(store, settings, receiver)
        if revision >= "0003":
            people_go_on(settings)
        assert service.stop() == Ended(0, "")
    assert asyncio.run(database.rows("PRAGMA integrity_check")) == [("ok",)]


@pytest.mark.parametrize("revision", [REVISIONS[0], REVISIONS[-1]])
def test_a_postgresql_is_upgraded_by_command(
    revision: str,
    store: OldStore,
    settings: dict[str, str],
    receiver: RecordingReceiver,
    postgres_url: str,
) -> None:
    with fresh_database_sync(postgres_url) as url:
        database = made_by_a_release_with(revision, store, Database(url))
        settings["DATABASE_URL"] = url
        assert run(settings, "migrate", "--with-downtime").returncode == 0
        assert asyncio.run(database.revision()) == HEAD
        with ServiceProcess(settings) as service:
            everything_goes_on(store, settings, receiver)
            if revision >= "0003":
                people_go_on(settings)
            assert service.stop() == Ended(0, "")


def everything_goes_on(
    store: OldStore, settings: dict[str, str], receiver: RecordingReceiver
) -> None:
    base_url = f"http://127.0.0.1:{settings['PORT']}"
    assert health(base_url) == WELL
    api_user = ApiUser(base_url, Keys(old.API_KEY, old.SERVICE_KEY))
    old_history_is_listed(api_user, store)
    what_waited_is_delivered(api_user, store, receiver)
    what_had_ended_is_sent_again(api_user, store, receiver)
    what_was_answered_is_answered_again(api_user, store)
    old_projects_move_on(api_user, receiver)
    refused = request(base_url, old.REVOKED_KEY, "GET", "/v1/projects")
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")


def old_history_is_listed(api_user: ApiUser, store: OldStore) -> None:
    endpoints = api_user.get("/v1/webhooks")["data"]
    assert [(each["id"], each["enabled"], each["secretHint"]) for each in endpoints] == [
        (str(old.DISABLED), False, "whsec_…Hh8"),
        (str(old.ENDPOINT), True, "whsec_…Hh8"),
    ]
    assert endpoints[1]["previousSecretExpiresAt"] is not None
    listed = api_user.get("/v1/deliveries")["data"]
    assert {each["id"] for each in listed} == {str(each) for each in store.deliveries.values()}
    assert [each["status"] for each in listed if each["finishedAt"]][-3:] == [
        "cancelled",
        "failed",
        "delivered",
    ]
    assert len(api_user.get(f"/v1/events?projectId={old.PROJECT}")["data"]) == len(store.deliveries)
    shown = delivery(api_user, store, "delivered")
    assert shown["event"]["id"] == str(store.event_of("delivered"))
    [attempt] = shown["attempts"]
    assert (
        attempt
        | {
            "number": 1,
            "durationMs": 12.5,
            "timings": {"dnsMs": 1.5, "connectMs": 2.25, "tlsMs": 4.0, "firstByteMs": 4.5},
            "signedWith": ["whsec_…Hh8", "whsec_…Pj8"],
            "responseStatus": 200,
            "responseBody": "ok",
            "outcome": "delivered",
        }
        == attempt
    )


def what_waited_is_delivered(
    api_user: ApiUser, store: OldStore, receiver: RecordingReceiver
) -> None:
    """Signed with the secret of before and the one before that."""
    for name, attempts in (("pending", 1), ("retrying", 2), ("delivering", 1)):
        ended = ended_delivery(api_user, store, name)
        assert (ended["status"], ended["attemptCount"]) == ("delivered", attempts)
        assert ended["attempts"][-1]["signedWith"][0] == "whsec_…Hh8"
    seen = {each.event_id: each for each in receiver.seen()}
    assert len(seen) == len(receiver.seen()) == 3
    for name in ("pending", "retrying", "delivering"):
        received = seen[str(store.event_of(name))]
        assert received.body == store.body_of(name)
        sent = Seen(received.at, str(old.ENDPOINT), received.headers, received.body)
        assert signature_fits(sent, [old.SECRET])
        assert signature_fits(sent, [old.PREVIOUS_SECRET])


def what_had_ended_is_sent_again(
    api_user: ApiUser, store: OldStore, receiver: RecordingReceiver
) -> None:
    for name in ("failed", "cancelled"):
        api_user.post(f"{address(store, name)}/retry", None, status=202)
        ended = ended_delivery(api_user, store, name)
        assert (ended["status"], ended["budget"]) == ("delivered", 2)
        assert receiver.seen()[-1].body == store.body_of(name)


def what_was_answered_is_answered_again(api_user: ApiUser, store: OldStore) -> None:
    headers = {
        "Authorization": f"Bearer {old.API_KEY}",
        "Idempotency-Key": old.IDEMPOTENCY_KEY,
    }
    again = httpx2.post(
        f"{api_user.base_url}/v1/projects",
        json={"name": "Trailer"},
        headers=headers,
        trust_env=False,
        timeout=PATIENCE_SECONDS,
    )
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    assert again.json() == {"id": str(old.PROJECT), "name": "Trailer"}
    assert report(api_user, old.REPORT_ID, "exporting") == {
        "reportId": old.REPORT_ID,
        "accepted": True,
        "eventId": str(store.event_of("delivered")),
        "notified": True,
    }


def old_projects_move_on(api_user: ApiUser, receiver: RecordingReceiver) -> None:
    before = len(receiver.seen())
    report(api_user, "report-from-now-1", "exporting")
    made = report(api_user, "report-from-now-2", "completed")
    receiver.wait_until(lambda it: len(it.requests) > before, "nothing came")
    assert receiver.seen()[-1].event_id == made["eventId"]
    assert api_user.get(f"/v1/projects/{old.PROJECT}")["status"] == "completed"


def people_go_on(settings: dict[str, str]) -> None:
    with httpx2.Client(
        base_url=f"http://127.0.0.1:{settings['PORT']}",
        cookies={"cuepost": old.SESSION_COOKIE},
        trust_env=False,
        timeout=PATIENCE_SECONDS,
    ) as browser:
        for path, words in (
            ("/settings/webhooks", "The editing suite"),
            ("/settings/account", "jo@example.com"),
            (f"/inbox/{old.INBOX_TOKEN}", "from before"),
            ("/settings/audit", "2001:db8::1"),
        ):
            page = browser.get(path)
            assert (page.status_code, words in page.text) == (200, True), path


def report(api_user: ApiUser, report_id: str, status: str) -> Any:
    milestone = {"reportId": report_id, "projectId": str(old.PROJECT), "status": status}
    answer = request(
        api_user.base_url, old.SERVICE_KEY, "POST", "/v1/milestones", {"milestones": [milestone]}
    )
    [result] = answer.json()["results"]
    assert result["accepted"], result
    return result


def address(store: OldStore, name: str) -> str:
    return f"/v1/webhooks/{old.ENDPOINT}/deliveries/{store.deliveries[name]}"


def delivery(api_user: ApiUser, store: OldStore, name: str) -> Any:
    return api_user.get(address(store, name))


def ended_delivery(api_user: ApiUser, store: OldStore, name: str) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := delivery(api_user, store, name))["status"] in LIVE:
        assert time.monotonic() < deadline, found
    return found
