"""The inbox behind ASGI, WSGI, Flask and Django: the same answers to the same requests."""

import io
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.conf import settings as django_settings
from django.test import RequestFactory
from fastapi import FastAPI
from flask import Flask, request
from starlette.routing import Route

from cuepost_receiver import Event, Inbox, SqliteStore
from cuepost_receiver.asgi import AsgiInbox
from cuepost_receiver.django import inbox_view
from cuepost_receiver.wsgi import WsgiInbox
from packages.receiver.tests.signing import NOW, SECRET, Delivery

GOOD = Delivery()
Send = Callable[[str, bytes, dict[str, str]], tuple[int, dict[str, str]]]


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    def handler(event: Event) -> None: ...

    store = SqliteStore(tmp_path / "inbox.sqlite3")
    inbox = Inbox(store, SECRET, handler, clock=lambda: NOW, poll_seconds=0.02)
    yield inbox
    assert inbox.close()


def through_wsgi(inbox: Inbox) -> Send:
    app = WsgiInbox(inbox, most_bytes=2_000)

    def send(method: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        answered: list[str] = []
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "CONTENT_LENGTH": headers.get("content-length", str(len(body))),
            "wsgi.input": io.BytesIO(body),
        }
        named = {f"HTTP_{name.upper().replace('-', '_')}": each for name, each in headers.items()}
        pieces = app(environ | named, lambda status, _headers: answered.append(status))
        return int(answered[0].split()[0]), json.loads(b"".join(pieces))

    return send


def through_flask(inbox: Inbox) -> Send:
    app = Flask("receiver")
    hook = WsgiInbox(inbox, most_bytes=2_000)
    app.add_url_rule("/cuepost", view_func=hook.view, methods=["POST", "GET"])

    def send(method: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        answer = app.test_client().open("/cuepost", method=method, data=body, headers=headers)
        return answer.status_code, answer.get_json()

    return send


def test_flask_may_have_read_the_body_before(inbox: Inbox) -> None:
    app = Flask("receiver")
    app.add_url_rule("/cuepost", view_func=WsgiInbox(inbox).view, methods=["POST"])
    app.before_request(lambda: request.get_data() and None)
    answer = app.test_client().post("/cuepost", data=GOOD.body, headers=GOOD.headers)
    assert answer.status_code == 200


def through_django(inbox: Inbox) -> Send:
    if not django_settings.configured:
        django_settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF="none")
    view = inbox_view(inbox, most_bytes=2_000)

    def send(method: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        kind = "application/json"
        request = RequestFactory().generic(method, "/", body, content_type=kind, headers=headers)
        answer = view(request)
        return answer.status_code, json.loads(answer.content)

    return send


@pytest.fixture(
    params=[through_wsgi, through_flask, through_django], ids=["wsgi", "flask", "django"]
)
def send(request: pytest.FixtureRequest, inbox: Inbox) -> Send:
    made: Send = request.param(inbox)
    return made


def test_a_delivery_and_its_duplicate_are_acknowledged(send: Send, inbox: Inbox) -> None:
    assert send("POST", GOOD.body, GOOD.headers) == (200, {"status": "accepted"})
    assert send("POST", GOOD.body, GOOD.headers) == (200, {"status": "duplicate"})


def test_a_forged_delivery_is_refused(send: Send) -> None:
    status, reported = send("POST", GOOD.body + b" ", GOOD.headers)
    assert (status, reported["error"]) == (400, "no_match")
    status, reported = send("POST", b"", {})
    assert (status, reported["error"]) == (400, "missing_id")


def test_other_methods_and_huge_bodies_are_refused(send: Send) -> None:
    assert send("GET", b"", {})[0] == 405
    assert send("POST", b"x" * 2_001, GOOD.headers)[0] == 413


def test_a_length_that_is_none_reads_nothing(inbox: Inbox) -> None:
    odd = GOOD.headers | {"content-length": "many"}
    status, reported = through_wsgi(inbox)("POST", GOOD.body, odd)
    assert (status, reported["error"]) == (400, "no_match")


@pytest.fixture
async def fastapi_client(inbox: Inbox) -> AsyncIterator[httpx2.AsyncClient]:
    hook = AsgiInbox(inbox, most_bytes=2_000)
    app = FastAPI(lifespan=hook.lifespan)
    app.router.routes.append(Route("/cuepost", hook))
    transport = httpx2.ASGITransport(app=app)
    async with hook.lifespan(), httpx2.AsyncClient(transport=transport, base_url="http://t") as it:
        yield it


async def test_fastapi_takes_the_inbox_as_a_route(fastapi_client: httpx2.AsyncClient) -> None:
    async def post(body: bytes) -> tuple[int, Any]:
        answer = await fastapi_client.post("/cuepost", content=body, headers=GOOD.headers)
        return answer.status_code, answer.json()

    assert await post(GOOD.body) == (200, {"status": "accepted"})
    assert await post(GOOD.body) == (200, {"status": "duplicate"})
    assert (await post(b"forged"))[0] == 400
    assert (await post(b"x" * 2_001))[0] == 413
    assert (await fastapi_client.get("/cuepost")).status_code == 405


class Wire:
    """An ASGI server's side, message by message."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self._messages = list(messages)
        self.sent: list[Any] = []

    async def receive(self) -> dict[str, Any]:
        return self._messages.pop(0)

    async def send(self, message: Any) -> None:
        self.sent.append(message)


async def test_a_sender_that_goes_away_gets_no_answer(inbox: Inbox) -> None:
    wire = Wire(
        {"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}
    )
    scope = {"type": "http", "method": "POST", "headers": []}
    await AsgiInbox(inbox)(scope, wire.receive, wire.send)
    assert wire.sent == []


async def test_it_is_a_whole_application_with_a_life(inbox: Inbox) -> None:
    wire = Wire({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
    await AsgiInbox(inbox)({"type": "lifespan"}, wire.receive, wire.send)
    assert [message["type"] for message in wire.sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    await AsgiInbox(inbox)({"type": "websocket"}, wire.receive, wire.send)


@pytest.mark.parametrize("length", [None, "0", "-1", "many"])
def test_a_body_without_a_usable_length_is_not_read_without_end(
    inbox: Inbox, length: str | None
) -> None:
    """As servers pass on a chunked body; Flask's reads until the end of the stream."""
    body = Endless()
    app = Flask("receiver")
    hook = WsgiInbox(inbox, most_bytes=2_000)
    app.add_url_rule("/cuepost", view_func=hook.view, methods=["POST"])
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/cuepost",
        "SERVER_NAME": "receiver",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        "wsgi.input": body,
        "wsgi.input_terminated": True,
        "HTTP_TRANSFER_ENCODING": "chunked",
    }
    if length is not None:
        environ["CONTENT_LENGTH"] = length
    answered: list[str] = []

    def start(*args: Any) -> Any:
        answered.append(args[0][:3])

    for application in (app, hook):
        list(application(dict(environ), start))
    assert answered == ["413", "400"]
    assert body.most <= 1 << 20


class Endless(io.RawIOBase):
    """A body that does not end; `most` is how much of it was read."""

    most = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "everything was wanted"
        self.most += size
        return b"x" * size

    def readinto(self, buffer: Any) -> int:
        self.most += len(buffer)
        return len(buffer)
