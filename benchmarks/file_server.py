"""Serves one file with `sendfile`: the cost of downloads outside of the service.

It answers any request with the whole file, once per connection.
"""

import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

AT_ONCE = 256 * 1024
BACKLOG = 1_024


@dataclass(slots=True)
class Download:
    client: socket.socket
    place: int = 0


@contextmanager
def file_server(file: Path) -> Iterator[str]:
    """Runs in a separate process; yields the URL of the file."""
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
        descriptor = listener.fileno()
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.file_server", str(descriptor), str(file)],
            pass_fds=[descriptor],
        )
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/{file.name}"
        finally:
            process.kill()
            process.wait()


def serve(listener: socket.socket, file: int) -> None:
    size = os.fstat(file).st_size
    with selectors.DefaultSelector() as ready:
        ready.register(listener, selectors.EVENT_READ)
        while True:
            for key, events in ready.select():
                if key.fileobj is listener:
                    _take(listener, ready)
                elif events & selectors.EVENT_READ:
                    _answer(key.data, ready, size)
                else:
                    _send_more(key.data, ready, file)


def _take(listener: socket.socket, ready: selectors.BaseSelector) -> None:
    client, _ = listener.accept()
    client.setblocking(False)
    ready.register(client, selectors.EVENT_READ, Download(client))


def _answer(download: Download, ready: selectors.BaseSelector, size: int) -> None:
    # A request is short and arrives in one packet.
    if not download.client.recv(65_536):
        _end(download, ready)
        return
    download.client.send(f"HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n".encode())
    ready.modify(download.client, selectors.EVENT_WRITE, download)


def _send_more(download: Download, ready: selectors.BaseSelector, file: int) -> None:
    with suppress(BlockingIOError):
        try:
            sent = os.sendfile(download.client.fileno(), file, download.place, AT_ONCE)
        except ConnectionError:
            sent = 0
        download.place += sent
        if not sent:
            _end(download, ready)


def _end(download: Download, ready: selectors.BaseSelector) -> None:
    ready.unregister(download.client)
    download.client.close()


def main(descriptor: str, path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    serve(socket.socket(fileno=int(descriptor)), file)


if __name__ == "__main__":
    main(*sys.argv[1:])
