"""Two services with two databases behind one nginx, which routes by key."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.nginx import Proxy, configured, running_nginx
from tests.support.operator_tools import program
from tests.support.postgres import fresh_database_sync
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import ServiceProcess, free_port, run

MASTER_KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


@dataclass(frozen=True, slots=True)
class Cell:
    settings: dict[str, str]
    account: dict[str, Any]

    @property
    def key(self) -> str:
        return str(self.account["apiKey"])

    def accounts(self, *arguments: str) -> Any:
        done = run(self.settings, "accounts", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@dataclass(frozen=True, slots=True)
class Site:
    proxy: Proxy
    receiver: RecordingReceiver
    a: Cell
    b: Cell

    def call(self, key: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        with self.proxy.client(key) as client:
            answer = client.request(method, path, json=body)
        return answer.status_code, answer.json()

    def report(self, cell: Cell, project_id: str, *statuses: str) -> list[Any]:
        milestones = [
            {"reportId": f"{project_id} {status}", "projectId": project_id, "status": status}
            for status in statuses
        ]
        key = cell.account["serviceKey"]
        status, reported = self.call(key, "POST", "/v1/milestones", {"milestones": milestones})
        assert status == 200, reported
        return list(reported["results"])


@pytest.fixture
def site(tmp_path: Path, postgres_url: str) -> Iterator[Site]:
    ports = (free_port(), free_port())
    proxy = configured(tmp_path, ports, kit="cells.conf")
    with ExitStack() as stack:
        receiver = stack.enter_context(RecordingReceiver())
        cells = []
        for name, port in zip("ab", ports, strict=True):
            settings = {
                "CELL": name,
                "PORT": str(port),
                "DATA_DIR": str(tmp_path / name),
                "DATABASE_URL": stack.enter_context(fresh_database_sync(postgres_url)),
                "MASTER_KEY": MASTER_KEY,
                "BASE_URL": proxy.url,
                "RECEIVER_HTTP": "true",
                "RECEIVER_NETWORKS": "127.0.0.0/8",
                "RECEIVER_PORTS": str(receiver.port),
            }
            cells.append(Cell(settings, json.loads(run(settings, "setup", "--json").stdout)))
            stack.enter_context(ServiceProcess(settings))
        yield Site(proxy, receiver, *cells)


def test_each_key_reaches_its_own_database(site: Site) -> None:
    with running_nginx(site.proxy):
        for cell, name in ((site.a, "a"), (site.b, "b")):
            assert cell.key.startswith(f"cpk_{name}_")
            status, made = site.call(cell.key, "POST", "/v1/projects", {"name": name})
            assert status == 201, made
            results = site.report(cell, made["id"], "processing", "exporting", "completed")
            assert [each["accepted"] for each in results] == [True] * 3
        for cell, name in ((site.a, "a"), (site.b, "b")):
            status, page = site.call(cell.key, "GET", "/v1/projects")
            assert [each["name"] for each in page["data"]] == [name]
        assert site.call("cpk_" + "0" * 32 + "A" * 43, "GET", "/v1/projects")[0] == 401


def test_the_key_of_an_account_that_has_moved_is_routed_by_its_id(site: Site) -> None:
    account_id, file = site.a.account["accountId"], str(site.proxy.folder / "account.gz")
    with running_nginx(site.proxy):
        status, made = site.call(
            site.a.key, "POST", "/v1/webhooks", {"url": site.receiver.url("/hook")}
        )
        assert status == 201, made
        project = site.call(site.a.key, "POST", "/v1/projects", {"name": "Cut"})[1]["id"]
        site.report(site.a, project, "processing", "exporting")
    site.a.accounts("export", account_id, "--to", file)
    site.b.accounts("import", file)
    code = site.a.accounts("finish-move", account_id, "--yes")["code"]
    site.b.accounts("release", account_id, code)

    with running_nginx(site.proxy):
        status, reported = site.call(site.a.key, "GET", "/v1/projects")
        assert (status, reported["code"]) == (410, "account_moved")
        [late] = site.report(site.a, project, "completed")
        assert (late["accepted"], late["reason"]) == (False, "account_moved")

    route(site.proxy, site.a.key)
    with running_nginx(site.proxy):
        status, page = site.call(site.a.key, "GET", "/v1/projects")
        assert [each["id"] for each in page["data"]] == [project]
        [booked] = site.report(site.b, project, "completed")
        assert booked["notified"]
        site.receiver.wait_until(lambda it: len(it.seen()) == 1, "the delivery")
        [seen] = site.receiver.seen()
        url = json.loads(seen.body)["data"]["resultUrl"]
        assert url.startswith(f"{site.proxy.url}/v1/projects/")
        status, result = site.call(site.a.key, "GET", url.removeprefix(site.proxy.url))
        assert (status, result["projectId"]) == (200, project)


def route(proxy: Proxy, key: str) -> None:
    """The line that the file has as a comment, for this key."""
    file = proxy.folder / "cuepost.conf"
    known = '    "~*^bearer +cpk_a_" cuepost_a;\n'
    text = file.read_text()
    assert known in text
    key_id = key.removeprefix("cpk_a_")[:32]
    file.write_text(text.replace(known, f'    "~*^bearer +cpk_a_{key_id}" cuepost_b;\n{known}'))


def test_nginx_accepts_the_configuration(tmp_path: Path) -> None:
    proxy = configured(tmp_path, (free_port(), free_port()), kit="cells.conf")
    checked = program("nginx").run("-t", "-p", tmp_path, "-c", proxy.folder / "nginx.conf")
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr
