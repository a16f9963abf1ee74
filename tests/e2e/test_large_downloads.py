"""Large files: they are handed out in pieces, and no one's memory or patience is used up.

`CUEPOST_TEST_DOWNLOAD_MIB` chooses the size; 5120 is the proof, less will do every day.
"""

import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.first_steps import ApiUser, keys_in, request
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess, free_port

MIB = 1024 * 1024
SIZE = int(os.environ.get("CUEPOST_TEST_DOWNLOAD_MIB", "512")) * MIB
LIMIT_SECONDS = 60 + SIZE // (20 * MIB)
KEY = "exports/large.mp4"
MARK = b"the last bytes of the film"
# Pieces, socket buffers and what the allocator keeps; far below the size of the file.
MOST_GROWTH = 32 * MIB


def _leads_to(link: Path, file: Path) -> bool:
    """It may be closed while one looks."""
    try:
        return str(link.readlink()) == str(file)
    except FileNotFoundError:
        return False


@dataclass(frozen=True, slots=True)
class Large:
    service: ServiceProcess
    link: str
    file: Path

    def memory(self) -> int:
        """The most that the service has ever had in memory, in bytes."""
        status = Path(f"/proc/{self.service.pid}/status").read_text()
        [line] = [each for each in status.splitlines() if each.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024

    def times_open(self) -> int:
        descriptors = Path(f"/proc/{self.service.pid}/fd")
        return sum(_leads_to(each, self.file) for each in descriptors.iterdir())

    def ask(self, **headers: str) -> socket.socket:
        parts = urlsplit(self.link)
        lines = [f"GET {parts.path} HTTP/1.1", f"host: {parts.netloc}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        client = socket.create_connection((str(parts.hostname), parts.port), PATIENCE_SECONDS)
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        return client


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Large]:
    """A service with a file that is all hole but for its end."""
    file = tmp_path / "data" / "media" / KEY
    settings = {"DATA_DIR": str(tmp_path / "data"), "PORT": str(free_port())}
    with ServiceProcess(settings) as service:
        file.parent.mkdir(parents=True)
        with file.open("wb") as written:
            written.seek(SIZE - len(MARK))
            written.write(MARK)
        keys = keys_in(service.greeting)
        assert keys is not None
        api_user = ApiUser(f"http://127.0.0.1:{settings['PORT']}", keys)
        yield Large(service, link_of(api_user), file)


def link_of(api_user: ApiUser) -> str:
    project = api_user.post("/v1/projects", {"name": "Long film"})["id"]
    api_user.report(project, "processing", "exporting")
    artifact = {
        "kind": "video",
        "name": "large.mp4",
        "key": KEY,
        "contentType": "video/mp4",
        "sizeBytes": SIZE,
    }
    report = {"reportId": "done", "projectId": project, "status": "completed"}
    body = {"milestones": [report | {"artifacts": [artifact]}]}
    request(api_user.base_url, api_user.keys.service, "POST", "/v1/milestones", body)
    link: str = api_user.get(f"/v1/projects/{project}/result")["links"][0]["url"]
    return link


def head_of(client: socket.socket) -> tuple[bytes, bytes]:
    """The head of the answer, and what came behind it already."""
    text = b""
    while b"\r\n\r\n" not in text:
        text += client.recv(65_536)
    head, _, body = text.partition(b"\r\n\r\n")
    return head, body


def drained(client: socket.socket) -> tuple[int, bytes]:
    """How many bytes come until the end, and the last of them; none is kept."""
    _, body = head_of(client)
    count, end, buffer = len(body), body, bytearray(MIB)
    while got := client.recv_into(buffer):
        count, end = count + got, (end + buffer[max(got - 64, 0) : got])[-64:]
    return count, end


@pytest.mark.timeout(LIMIT_SECONDS)
def test_a_large_file_takes_no_more_memory_than_a_small_one(large: Large) -> None:
    with large.ask(range="bytes=-1000000") as client:
        assert drained(client)[0] == 1_000_000
    before = large.memory()
    with large.ask() as client:
        count, end = drained(client)
    assert count == SIZE
    assert end.endswith(MARK)
    assert large.memory() - before < MOST_GROWTH


@pytest.mark.timeout(LIMIT_SECONDS)
def test_many_who_read_slowly_take_no_more_memory_either(large: Large) -> None:
    with large.ask(range="bytes=-1000000") as client:
        drained(client)
    before = large.memory()
    clients = [large.ask() for _ in range(50)]
    for client in clients:
        head_of(client)
    assert large.times_open() == 50
    assert large.memory() - before < MOST_GROWTH
    for client in clients:
        client.close()


def test_an_interrupted_download_goes_on_at_its_last_byte(large: Large) -> None:
    with large.ask() as client:
        head, got = head_of(client)
        while len(got) < 3 * MIB:
            got += client.recv(65_536)
    [tag] = [line[6:].decode() for line in head.split(b"\r\n") if line.startswith(b"etag: ")]
    with large.ask(**{"range": f"bytes={len(got)}-", "if-range": tag}) as client:
        head, _ = head_of(client)
    assert head.startswith(b"HTTP/1.1 206 ")
    assert f"content-range: bytes {len(got)}-{SIZE - 1}/{SIZE}".encode() in head
    with large.ask(**{"range": f"bytes={SIZE - len(MARK)}-", "if-range": tag}) as client:
        assert drained(client) == (len(MARK), MARK)


def test_nothing_more_is_read_for_a_client_that_has_gone(large: Large) -> None:
    with large.ask() as client:
        head_of(client)
        assert large.times_open() == 1
    deadline = time.monotonic() + PATIENCE_SECONDS
    while large.times_open():
        assert time.monotonic() < deadline
    assert large.service.stop().code == 0
