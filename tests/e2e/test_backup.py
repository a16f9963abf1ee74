"""A copy is taken of a busy embedded store, and another service carries on with it."""

import json
import shutil
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.tables import queue
from tests.e2e.first_steps import WELL, health
from tests.faults.harness import Harness, harness, repeated
from tests.support.service_process import Ended, ServiceProcess, free_port, run
from tests.support.store_rows import AnyStore, rows

EVENTS = 15
STORE = "cuepost.sqlite3"


def test_a_copy_of_a_busy_store_is_carried_on_with_elsewhere(tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite3"
    with harness({"DATA_DIR": str(tmp_path / "data")}) as it:
        with ServiceProcess(it.settings) as service, it.load() as load:
            load.wait_for(EVENTS)
            it.receiver.hold()
            load.wait_for(EVENTS)
            promised = set(load.acknowledged)
            backed_up = run(it.settings, "backup", str(copy), "--json")
            load.wait_for(EVENTS)
            it.receiver.release()
            load.stop()
            it.wait_until_settled()
            assert service.stop() == Ended(0, "")
        assert (backed_up.returncode, backed_up.stderr) == (0, "")
        assert json.loads(backed_up.stdout)["sizeBytes"] == copy.stat().st_size
        it.require_nothing_lost(load)

        assert events_in(copy) >= promised
        assert events_in(copy) < load.acknowledged
        carry_on(restored(it, copy, tmp_path / "restored"), len(load.acknowledged) + EVENTS)


def restored(it: Harness, copy: Path, folder: Path) -> Harness:
    folder.mkdir()
    shutil.copy(copy, folder / STORE)
    settings = it.settings | {"DATA_DIR": str(folder), "PORT": str(free_port())}
    api_user = replace(it.api_user, base_url=f"http://127.0.0.1:{settings['PORT']}")
    return replace(it, settings=settings, api_user=api_user)


def carry_on(it: Harness, events: int) -> None:
    """What waited when the copy was taken is sent, although some of it was sent since."""
    waiting, returned = it.ask(queued), it.ask(unleased)
    began = time.time()
    with ServiceProcess(it.settings) as service:
        assert health(it.api_user.base_url) == WELL
        it.wait_until_settled()
        with it.load() as load:
            load.wait_for(events)
            load.stop()
            it.wait_until_settled()
        assert service.stop() == Ended(0, "")
    history = it.history(load)
    # What was made after the copy is not in it, although the receiver got it from the other store.
    in_the_copy = {each.event_id for each in history.deliveries}
    history.seen = [each for each in history.seen if each.event_id in in_the_copy]
    assert waiting
    assert repeated(history) == waiting
    # The copy records as interrupted what was leased in it. Where copying takes long, the worker
    # has returned some of the rest, so the copy cannot know that it was sent from the other store.
    sent_before = {
        (each.webhook_id, each.event_id) for each in history.deliveries if each.id in returned
    }
    history.seen = [
        each
        for each in history.seen
        if each.at >= began or (each.webhook_id, each.event_id) not in sent_before
    ]
    assert history.broken_promises() == []


async def queued(store: AnyStore) -> set[str]:
    return {str(row.id) for row in await rows(store, sa.select(queue.c.id))}


async def unleased(store: AnyStore) -> set[str]:
    chosen = sa.select(queue.c.id).where(queue.c.worker.is_(None))
    return {str(row.id) for row in await rows(store, chosen)}


def events_in(copy: Path) -> set[str]:
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {str(UUID(bytes=row[0])) for row in connection.execute("SELECT id FROM events")}


def test_a_copy_is_of_use_only_with_its_master_key(tmp_path: Path) -> None:
    settings = {"DATA_DIR": str(tmp_path / "data"), "PORT": str(free_port())}
    with harness(settings) as it:
        key_in_a_file = {name: value for name, value in it.settings.items() if name != "MASTER_KEY"}
        with ServiceProcess(key_in_a_file):
            it.api_user.post("/v1/webhooks", {"url": it.receiver.url("/hook")})
            said = run(key_in_a_file, "backup", str(tmp_path / "copy.sqlite3"))
        assert said.returncode == 0
        key = tmp_path / "data" / "master.key"
        assert f"Master key  {key}\n" in said.stdout

        there = restored(it, tmp_path / "copy.sqlite3", tmp_path / "restored").settings
        alone = serve_once(there | {"MASTER_KEY": "BBBB" * 10 + "BBA="})
        assert alone == (
            1,
            "Error: None of the master keys opens this value; was CUEPOST_MASTER_KEY changed?\n",
        )
        shutil.copy2(key, tmp_path / "restored")
        del there["MASTER_KEY"]
        with ServiceProcess(there) as service:
            assert service.stop() == Ended(0, "")


def serve_once(settings: Mapping[str, str]) -> tuple[int, str]:
    ended = run(settings, "serve")
    return ended.returncode, ended.stderr
