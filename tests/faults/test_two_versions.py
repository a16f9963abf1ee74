"""Two versions on one database under load: migrated, replaced one by one, rolled back."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from cuepost.adapters.storage import schema
from tests.e2e.first_steps import ApiUser, health
from tests.faults.harness import Harness, harness
from tests.support.code_versions import MIGRATIONS, PRESENT, CodeVersion, last_release, next_version
from tests.support.load import Load
from tests.support.service_process import ServiceProcess, free_port, run

ROUNDS = int(os.environ.get("CUEPOST_TEST_VERSION_CHANGES", "1"))
HALVES = ("api", "api", "worker", "worker")
ROLLED_BACK = (1, 3)
EVENTS_PER_STEP = 12
READY_SECONDS = 20.0
PAGES = ("/v1/webhooks", "/v1/projects", "/v1/events", "/v1/deliveries")
COLUMN = 'op.add_column("{}", sa.Column("added", sa.Integer(), server_default="1", nullable=False))'
TABLE = 'op.create_table("added", sa.Column("id", sa.Integer(), primary_key=True))'
EXPANSION = (
    TABLE,
    *(COLUMN.format(table) for table in ("queue", "projects", "endpoints", "workers", "lanes")),
    *(COLUMN.format(table) for table in ("events", "deliveries", "attempts")),
    'create_index_concurrently("queue_by_added", "queue", ["added", "id"])',
    'create_index_concurrently("deliveries_by_added", "deliveries", ["added", "id"])',
)
NEWER = "The database's schema (9001) was made by a newer cuepost; start that version"
pytestmark = pytest.mark.timeout(900)


@dataclass(slots=True)
class Readiness:
    """Asks every process that should be ready, all the time."""

    watched: set[str] = field(default_factory=set)
    refusals: list[str] = field(default_factory=list)
    asked: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _client: httpx2.Client = field(
        default_factory=lambda: httpx2.Client(timeout=20, trust_env=False)
    )

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join(READY_SECONDS)

    def expect(self, url: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while self._ask(url) != "":
            assert time.monotonic() < deadline, f"{url} does not get ready"
        with self._lock:
            self.watched.add(url)

    def forget(self, url: str) -> None:
        with self._lock:
            self.watched.remove(url)

    def _watch(self) -> None:
        while not self._stopped.wait(0.05):
            with self._lock:
                self.refusals += filter(None, map(self._ask, self.watched))
                self.asked += len(self.watched)

    def _ask(self, url: str) -> str:
        try:
            # A new connection each time, as probes have them.
            answer = self._client.get(f"{url}/readyz", headers={"Connection": "close"})
        except httpx2.TransportError as error:
            return f"{url} {error!r}"
        return "" if answer.status_code == 200 else f"{url} {answer.text}"


@dataclass(slots=True)
class Fleet:
    """Two APIs and two workers, of whatever version each."""

    it: Harness
    running: ExitStack
    readiness: Readiness = field(default_factory=Readiness)
    ports: Sequence[int] = field(default_factory=lambda: [free_port() for _ in HALVES])
    services: list[ServiceProcess] = field(default_factory=list)

    @property
    def api_urls(self) -> list[str]:
        return [self.url(place) for place, half in enumerate(HALVES) if half == "api"]

    def url(self, place: int) -> str:
        return f"http://127.0.0.1:{self.ports[place]}"

    def start(self, version: CodeVersion, place: int) -> ServiceProcess:
        half, port = HALVES[place], str(self.ports[place])
        own = {"PORT": port} if half == "api" else {"WORKER_PORT": port}
        service = self.running.enter_context(version.start(self.it.settings | own, half))
        self.readiness.expect(self.url(place))
        return service

    def replace(self, version: CodeVersion, place: int, load: Load) -> None:
        """As an operator does it: out of the proxy, stopped, started, and back."""
        load.move_to(*(url for url in self.api_urls if url != self.url(place)))
        self.stop(place)
        self.services[place] = self.start(version, place)
        load.move_to(*self.api_urls)
        self.require_progress(load)

    def require_progress(self, load: Load) -> None:
        load.wait_for(EVENTS_PER_STEP)
        assert self.readiness.refusals == []
        assert load.answers.keys() == {200}
        for url in self.api_urls:
            reader = ApiUser(url, self.it.api_user.keys)
            assert all(reader.get(path)["data"] for path in PAGES)

    def stop(self, place: int) -> None:
        self.readiness.forget(self.url(place))
        ended = self.services[place].stop()
        assert ended.code == 0, ended.stderr
        assert "Traceback" not in ended.stderr, ended.stderr


@contextmanager
def fleet(settings: dict[str, str], version: CodeVersion) -> Iterator[tuple[Fleet, Load]]:
    port = free_port()
    with (
        harness(settings | {"PORT": str(port)}, set_up=version) as it,
        ExitStack() as running,
    ):
        made = Fleet(it, running, ports=[port, *(free_port() for _ in HALVES[1:])])
        running.enter_context(made.readiness.watching())
        for place in range(len(HALVES)):
            made.services.append(made.start(version, place))
        with it.load(*made.ports[:2]) as load:
            load.wait_for(EVENTS_PER_STEP)
            yield made, load


def roll_over(settings: dict[str, str], old: CodeVersion, new: CodeVersion) -> None:
    with fleet(settings, old) as (services, load):
        for _ in range(ROUNDS):
            migrated = new.run(services.it.settings, "migrate")
            assert migrated.returncode == 0, migrated.stderr
            services.require_progress(load)
            for place in range(len(HALVES)):
                services.replace(new, place, load)
            for place in ROLLED_BACK:
                services.replace(old, place, load)
        load.stop()
        services.it.wait_until_settled()
        assert services.readiness.asked > len(HALVES)
        assert services.readiness.refusals == []
        for place in range(len(HALVES)):
            services.stop(place)
        services.it.require_nothing_lost(load)
        assert load.answers.keys() == {200}


def test_this_version_and_the_next_one(postgres_settings: dict[str, str], tmp_path: Path) -> None:
    roll_over(postgres_settings, PRESENT, next_version(tmp_path / "next", *EXPANSION))


def test_the_last_release_and_this_version(
    postgres_settings: dict[str, str], tmp_path: Path
) -> None:
    release = last_release(tmp_path / "release")
    if release is None:
        pytest.skip("no release has a tag yet")
    migrations = (release.root / MIGRATIONS / "versions").glob("*.py")
    if not any("oldest_code" in each.read_text() for each in migrations):
        pytest.skip("the last release is from before two versions could run side by side")
    roll_over(postgres_settings, release, PRESENT)


def test_a_schema_that_this_version_cannot_run_on(
    postgres_settings: dict[str, str], tmp_path: Path
) -> None:
    new = next_version(tmp_path / "next", TABLE, oldest_code="9001")
    with harness(postgres_settings) as it:
        settings, url = it.settings, it.api_user.base_url
        with ServiceProcess(settings) as service:
            Readiness().expect(url)
            refused = new.run(settings, "migrate")
            assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
            own = schema.revisions()[-1]
            assert f"({own}) could not go on after this upgrade" in refused.stderr
            assert "Stop all processes and run 'cuepost migrate --with-downtime'" in refused.stderr
            Readiness().expect(url)

            assert new.run(settings, "migrate", "--with-downtime").returncode == 0
            assert health(url)[1] == (503, "not_ready")
            assert f"event=not_ready operation=readyz sqlstate=- error={NEWER}" in service.said
        ended = run(settings, "serve")
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr.startswith(f"Error: {NEWER}")
        with new.start(settings, "serve"):
            Readiness().expect(url)
