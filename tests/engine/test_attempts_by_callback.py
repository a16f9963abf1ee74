"""Attempts over connections that are open already: a result each, told by the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from cuepost.domain.attempt import Outcome, Timings
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.retry_schedule import RetrySchedule
from cuepost.domain.signing import SigningSecret, signature
from cuepost.engine.attempt_pipeline import AttemptPipeline, Crash
from cuepost.engine.dispatcher import Dispatcher
from cuepost.ports.dispatch import Assignment, Result
from cuepost.ports.transport import Exchange, Request
from cuepost.testing import START, Answer, VirtualClock
from tests.engine.test_attempt_pipeline import BODY, BOX, EVENT, NEW, OLD, URL, assignment, stored
from tests.support.engine_harness import MINUTE, EngineHarness, RunScenarios

OK = Exchange(1.0, Timings(), status=200)
OTHER_URL = "https://other.example.com/cue"


class OpenConnections:
    """Has one to every receiver; `answers` come one after the other, then only successes."""

    def __init__(self, *answers: Exchange | Exception | None) -> None:
        self._answers = deque(answers)
        self.requests: list[Request] = []
        self.sent_again: list[Request] = []

    def start(self, request: Request, done: Callable[[Exchange | None], None]) -> bool:
        self.requests.append(request)
        answer = self._answers.popleft() if self._answers else OK
        if isinstance(answer, Exception):
            raise answer
        asyncio.get_running_loop().call_soon(done, answer)
        return True

    async def send(self, request: Request) -> Exchange:
        self.sent_again.append(request)
        return OK

    def header(self, name: str) -> str:
        return dict(self.requests[-1].headers)[name]


class Lab:
    def __init__(self, transport: OpenConnections, policy: EgressPolicy | None = None) -> None:
        self.clock = VirtualClock()
        self.transport = transport
        self.pipeline = AttemptPipeline(
            clock=self.clock,
            box=BOX,
            policy=policy or EgressPolicy(),
            transport=transport,
            schedule=RetrySchedule((timedelta(seconds=60),)),
            jitter=lambda: 0.0,
            timeout=timedelta(seconds=15),
            user_agent="cuepost/1.2.3",
        )

    async def ended(self, made: Assignment) -> Result | Crash:
        reported: list[Result | Crash] = []
        async with asyncio.TaskGroup() as tasks:
            assert self.pipeline.start(made, reported.append, tasks.create_task)
            assert reported == [], "not before start has returned"
            with anyio.fail_after(5):
                while not reported:
                    await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        [ended] = reported
        return ended

    async def signature_of(self, made: Assignment) -> str:
        assert isinstance(await self.ended(made), Result)
        return self.transport.header("webhook-signature")

    def expected(self, *secrets: SigningSecret) -> str:
        timestamp = int(self.clock.now().timestamp())
        return " ".join(signature(each, EVENT, timestamp, BODY) for each in secrets)


async def test_the_result_is_told_once_and_after_the_start() -> None:
    lab = Lab(OpenConnections())
    made = assignment()
    ended = await lab.ended(made)
    assert isinstance(ended, Result)
    assert (ended.assignment, ended.attempt.outcome) == (made, Outcome.DELIVERED)
    assert lab.transport.sent_again == []


async def test_what_goes_on_the_wire_says_the_same_as_the_headers_on_record() -> None:
    lab = Lab(OpenConnections())
    ended = await lab.ended(assignment())
    assert isinstance(ended, Result)
    head, _, body = lab.transport.requests[0].message.partition(b"\r\n\r\n")
    lines = [f"{name}: {value}" for name, value in ended.attempt.request_headers]
    expected = [
        "POST /cue HTTP/1.1",
        "host: hooks.example.com",
        *lines,
        f"content-length: {len(BODY)}",
    ]
    assert (head.decode().split("\r\n"), body) == (expected, BODY)


async def test_a_request_over_a_connection_that_was_closed_is_sent_again_unchanged() -> None:
    lab = Lab(OpenConnections(None))
    ended = await lab.ended(assignment())
    assert isinstance(ended, Result)
    assert ended.attempt.outcome is Outcome.DELIVERED
    assert lab.transport.sent_again == lab.transport.requests


async def test_a_blocked_receiver_is_told_like_any_result() -> None:
    lab = Lab(OpenConnections(), EgressPolicy(ports=((8443, 8443),)))
    ended = await lab.ended(assignment())
    assert isinstance(ended, Result)
    assert ended.attempt.outcome is Outcome.BLOCKED_DESTINATION
    assert lab.transport.requests == []


async def test_a_secret_that_cannot_be_opened_is_told_as_a_crash() -> None:
    lab = Lab(OpenConnections())
    made = assignment(replace(stored(NEW, 1), sealed=b"of another master key"))
    ended = await lab.ended(made)
    assert isinstance(ended, Crash)
    assert ended.assignment is made


async def test_a_transport_that_fails_is_told_as_a_crash() -> None:
    error = ZeroDivisionError()
    assert await Lab(OpenConnections(error)).ended(made := assignment()) == Crash(made, error)


async def test_a_secret_is_used_no_more_from_the_instant_at_which_it_expires() -> None:
    lab = Lab(OpenConnections())
    expiring = stored(OLD, 1, expires_at=START + timedelta(seconds=1))
    made = assignment(stored(NEW, 2), expiring)
    lab.clock.advance(0.999)
    assert await lab.signature_of(made) == lab.expected(NEW, OLD)
    lab.clock.advance(0.001)
    assert await lab.signature_of(made) == lab.expected(NEW)


async def test_a_changed_secret_is_used_at_once() -> None:
    lab = Lab(OpenConnections())
    assert await lab.signature_of(assignment(stored(OLD, 1))) == lab.expected(OLD)
    assert await lab.signature_of(assignment(stored(NEW, 2))) == lab.expected(NEW)
    assert await lab.signature_of(assignment(stored(OLD, 1))) == lab.expected(OLD)


async def test_a_changed_url_is_used_at_once() -> None:
    lab = Lab(OpenConnections())
    made = assignment()
    await lab.ended(made)
    await lab.ended(replace(made, target=replace(made.target, url=OTHER_URL)))
    await lab.ended(made)
    assert [each.url.text for each in lab.transport.requests] == [URL, OTHER_URL, URL]
    hosts = [b"host: hooks.", b"host: other.", b"host: hooks."]
    messages = [each.message for each in lab.transport.requests]
    assert all(host in message for host, message in zip(hosts, messages, strict=True))


def test_no_attempt_begins_while_too_many_results_wait_to_be_recorded(
    run_embedded: RunScenarios,
) -> None:
    """Eight are held in memory, and one is in flight at a time."""

    async def scenario(engine: EngineHarness) -> None:
        harness, watch = engine.harness, engine.store.watch
        await harness.endpoint()
        engine.transport.will(URL, *(Answer(seconds=0.01) for _ in range(8)))
        async with engine.delivering(engine.dispatcher(attempts=8, cap=1)) as dispatcher:
            dispatcher._most_unrecorded = 3
            projects = [await harness.project() for _ in range(8)]
            await harness.report(*map(harness.milestone, projects))
            watch.fails = lambda _: True
            await engine.later(timedelta(seconds=0.9))
            sent_without_a_store = len(engine.sent)
            watch.fails = lambda _: False
            await engine.later(MINUTE)
        assert (sent_without_a_store, len(engine.sent)) == (3, 8)

    run_embedded(scenario)


async def deliver_one(engine: EngineHarness, dispatcher: Dispatcher) -> None:
    async with engine.delivering(dispatcher):
        await engine.harness.complete()
        await engine.later()


def test_a_bug_at_the_end_of_an_attempt_ends_the_dispatcher(
    run_embedded: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        dispatcher = engine.dispatcher(transport=OpenConnections())

        def broken(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(dispatcher.board, "done", broken)
        with pytest.raises(ExceptionGroup) as raised:
            await deliver_one(engine, dispatcher)
        assert raised.group_contains(ZeroDivisionError)

    run_embedded(scenario)
