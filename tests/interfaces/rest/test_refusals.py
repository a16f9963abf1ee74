"""What goes wrong inside: answered without a word about the inside."""

import logging
from dataclasses import replace
from typing import Any, NoReturn

import httpx2
import pytest

from cuepost.domain.errors import Refused
from cuepost.interfaces.rest.problems import STATUS_OF_KIND, status_of
from cuepost.ports.store import Action, CommitUnknown, Contention, Priority, StoreUnavailable
from tests.application.harness import Harness
from tests.interfaces.rest.client import Api, opened, problem
from tests.support.coming_back import says_when_to_come_back


class Broken:
    """A transaction that cannot be opened."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def __aenter__(self) -> NoReturn:
        raise self._error

    async def __aexit__(self, *_: object) -> None: ...


class BrokenStore:
    """Works until it is told to break."""

    def __init__(self, harness: Harness, error: Exception) -> None:
        self._store = harness.store
        self._error = error
        self.breaks = False

    def snapshot(self) -> Any:
        return Broken(self._error) if self.breaks else self._store.snapshot()

    def single_read(self) -> Any:
        return Broken(self._error) if self.breaks else self._store.single_read()

    def transaction(self) -> Any:
        return Broken(self._error) if self.breaks else self._store.transaction()

    async def write(self, action: Action[Any], priority: Priority) -> Any:
        if self.breaks:
            raise self._error
        return await self._store.write(action, priority)

    async def check(self) -> None:
        raise self._error


async def broken(harness: Harness, error: Exception) -> Api:
    """The key was seen just before, so that the call itself finds the store broken."""
    store: Any = BrokenStore(harness, error)
    api = await opened(replace(harness, store=store))
    await api.done("GET", "/v1/projects")
    await api.report({"reportId": "r", "projectId": str(harness.account.id), "status": "ready"})
    store.breaks = True
    return api


@pytest.mark.parametrize("error", [StoreUnavailable("secret host"), Contention("secret row")])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/projects", None),
        ("POST", "/v1/projects", {"name": "a"}),
        ("PATCH", "/v1/projects/0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90", {"name": "a"}),
    ],
)
async def test_a_store_out_of_reach_is_answered_with_a_time_to_come_back(
    sqlite_harness: Harness, error: Exception, method: str, path: str, body: Any
) -> None:
    api = await broken(sqlite_harness, error)
    answer = await api.call(method, path, body, headers={"Idempotency-Key": "k"})
    assert problem(answer) == (503, "store_unavailable")
    assert says_when_to_come_back(answer.headers)
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (StoreUnavailable(), "nothing was changed"),
        (CommitUnknown(), "the change may have been made"),
    ],
)
async def test_it_is_told_whether_anything_may_have_been_changed(
    sqlite_harness: Harness, error: Exception, reported: str
) -> None:
    api = await broken(sqlite_harness, error)
    answer = await api.call("POST", "/v1/projects", {"name": "a"})
    assert problem(answer) == (503, "store_unavailable")
    assert reported in answer.json()["detail"]


async def test_a_key_that_cannot_be_looked_up_is_not_called_wrong(sqlite_harness: Harness) -> None:
    api = await broken(sqlite_harness, StoreUnavailable())
    api.harness.clock.advance(2)
    assert problem(await api.call("GET", "/v1/projects")) == (503, "store_unavailable")


async def test_a_bug_is_logged_and_answered_without_its_details(
    sqlite_harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    api = await broken(sqlite_harness, RuntimeError("the inside"))
    with caplog.at_level(logging.ERROR, "cuepost.rest"):
        answer = await api.call("GET", "/v1/projects")
    assert problem(answer) == (500, "internal_error")
    assert "inside" not in answer.text
    # Something that an earlier test left behind may be logged during this time.
    of_rest = [each for each in caplog.records if each.name == "cuepost.rest"]
    [record] = [each for each in of_rest if each.levelno >= logging.ERROR]
    assert record.getMessage() == "event=internal_error operation=listProjects"
    assert record.exc_info is not None


async def test_a_client_that_hangs_up_gets_no_answer_and_changes_nothing(
    sqlite_harness: Harness,
) -> None:
    api = await opened(sqlite_harness)
    before = await api.stored()
    transport = api.client._transport
    assert isinstance(transport, httpx2.ASGITransport)
    sent: list[Any] = []
    messages = iter(
        [
            {"type": "http.request", "body": b'{"name":', "more_body": True},
            {"type": "http.disconnect"},
        ]
    )

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/projects",
        "query_string": b"",
        "headers": [
            (b"authorization", f"Bearer {api.owner}".encode()),
            (b"content-type", b"application/json"),
        ],
        "client": None,
    }
    await transport.app(scope, receive, send)
    assert sent == []
    assert await api.stored() == before


def test_every_kind_of_refusal_has_a_status() -> None:
    def kinds(kind: type[Refused]) -> list[type[Refused]]:
        return [kind, *(each for child in kind.__subclasses__() for each in kinds(child))]

    found = {kind: status_of(kind) for kind in kinds(Refused) if kind is not Refused}
    assert set(found.values()) == set(STATUS_OF_KIND.values())
