"""A web site in a thread, for results and media, that misbehaves as it is told."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = tuple[str, dict[str, str]]


@dataclass
class Site:
    """Answers each path by a function; remembers every request."""

    routes: dict[str, Callable[[BaseHTTPRequestHandler], object]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    def url(self, path: str = "") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def headers_of(self, path: str) -> list[dict[str, str]]:
        return [headers for asked, headers in self.requests if asked.partition("?")[0] == path]


@contextmanager
def running() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            site.requests.append((self.path, headers))
            route = site.routes.get(self.path.partition("?")[0])
            if route is None:
                answer(self, 404)
            else:
                route(self)

        def log_message(self, *_: object) -> None:
            """The test tells."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        site.port = server.server_address[1]
        serving = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        serving.start()
        try:
            yield site
        finally:
            server.shutdown()
            serving.join()


def answer(
    request: BaseHTTPRequestHandler,
    status: int = 200,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> None:
    request.send_response(status)
    for name, value in {"content-length": str(len(body)), **(headers or {})}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)
    request.close_connection = True


def as_json(content: Any, status: int = 200) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda request: answer(request, status, json.dumps(content).encode())


def redirect(url: str, status: int = 302) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda request: answer(request, status, headers={"location": url})


@dataclass
class File:
    """A file with a version; breaks off after `breaks[0]` bytes of the first answer, and so on."""

    content: bytes
    tag: str | None = '"v1"'
    breaks: list[int] = field(default_factory=list)

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        start = self._start(request)
        body = self.content[start:]
        headers = {"etag": self.tag} if self.tag else {}
        if start:
            whole = len(self.content)
            headers["content-range"] = f"bytes {start}-{whole - 1}/{whole}"
        if not self.breaks:
            answer(request, 206 if start else 200, body, headers)
            return
        headers["content-length"] = str(len(body))
        answer(request, 206 if start else 200, body[: self.breaks.pop(0)], headers)

    def _start(self, request: BaseHTTPRequestHandler) -> int:
        asked = request.headers["range"]
        if not asked or request.headers["if-range"] != self.tag:
            return 0
        return int(asked.removeprefix("bytes=").removesuffix("-"))
