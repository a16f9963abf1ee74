"""A log line for each attempt, and metrics that name no one."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio.lowlevel
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from cuepost.adapters.guarded_transport import Unusable
from cuepost.adapters.telemetry import BacklogMetrics, EngineTelemetry, TaskMetrics
from cuepost.domain.attempt import Outcome, Timings
from cuepost.domain.delivery import DeliveryStatus, Trigger
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.event import event_body
from cuepost.domain.instants import compose, to_millis
from cuepost.domain.receiver_url import parse_receiver_url
from cuepost.ports.dispatch import NextStep, Result, Target
from cuepost.ports.store import StoreUnavailable
from cuepost.ports.telemetry import Waiting
from cuepost.ports.transport import Request
from cuepost.testing import START, VirtualClock
from tests.support.records import Records

SECOND = timedelta(seconds=1)
RECORDS = Records()
EVENT_ID = compose(to_millis(START), 1)
CANARY = "canary"


def result(**changed: Any) -> Result:
    """A first attempt, half a second after the event, that the receiver refused."""
    delivery = RECORDS.delivery(RECORDS.id())
    assignment = RECORDS.assignment(
        delivery,
        event_id=EVENT_ID,
        body=event_body(EVENT_ID, "project.completed", START, {"type": CANARY, "note": CANARY}),
        target=Target(
            delivery.account_id,
            delivery.webhook_id,
            f"https://{CANARY}.example.com/?token={CANARY}",
            (RECORDS.secret(),),
        ),
    )
    attempt = RECORDS.attempt(
        delivery,
        started_at=START + SECOND / 2,
        request_headers=(("webhook-signature", CANARY),),
        response_headers=(("server", CANARY),),
        response_body=CANARY.encode(),
        signed_with=(CANARY,),
    )
    made = Result(assignment, attempt, NextStep(DeliveryStatus.RETRYING, START + 60 * SECOND))
    for part in ("assignment", "attempt"):
        made = replace(made, **{part: replace(getattr(made, part), **changed.pop(part, {}))})
    return replace(made, **changed)


DELIVERED = {
    "attempt": {"outcome": Outcome.DELIVERED, "response_status": 200},
    "next_step": NextStep(DeliveryStatus.DELIVERED),
}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def telemetry(registry: CollectorRegistry) -> EngineTelemetry:
    return EngineTelemetry(registry)


def line_of(
    telemetry: EngineTelemetry, caplog: pytest.LogCaptureFixture, reported: Result
) -> logging.LogRecord:
    [record] = records_of(telemetry, caplog, reported)
    return record


def records_of(
    telemetry: EngineTelemetry, caplog: pytest.LogCaptureFixture, *reported: Result
) -> list[logging.LogRecord]:
    async def attempted() -> None:
        for each in reported:
            telemetry.attempted(each)
        await anyio.lowlevel.checkpoint()

    caplog.set_level(logging.INFO, "cuepost.attempt")
    asyncio.run(attempted())
    return caplog.records


def test_an_attempt_is_one_line(
    telemetry: EngineTelemetry, caplog: pytest.LogCaptureFixture
) -> None:
    reported = result()
    record = line_of(telemetry, caplog, reported)

    assert (record.name, record.levelname) == ("cuepost.attempt", "INFO")
    assert record.getMessage() == (
        f"account={reported.assignment.account_id} webhook={reported.assignment.webhook_id} "
        f"delivery={reported.assignment.delivery_id} event={EVENT_ID} type=project.completed "
        "budget=1 number=1 trigger=automatic outcome=http_error status=503 ms=12.8 "
        "dns_ms=0.5 connect_ms=1.2 tls_ms=2.5 first_byte_ms=8.0 "
        "verdict=retrying due_again=2026-01-02T03:05:05.678Z"
    )


def test_attempts_that_end_together_are_one_record_with_a_line_each(
    telemetry: EngineTelemetry, caplog: pytest.LogCaptureFixture
) -> None:
    reported = [result() for _ in range(3)]
    [record] = records_of(telemetry, caplog, *reported)
    lines = record.getMessage().split("\n")
    assert [
        f"delivery={each.assignment.delivery_id} " in line
        for each, line in zip(reported, lines, strict=True)
    ] == [True] * 3


def test_what_is_not_known_is_a_dash(
    telemetry: EngineTelemetry, caplog: pytest.LogCaptureFixture
) -> None:
    reported = result(
        assignment={"trigger": Trigger.MANUAL},
        attempt={"outcome": Outcome.TIMEOUT, "response_status": None, "timings": Timings()},
        next_step=NextStep(DeliveryStatus.FAILED),
    )
    line = line_of(telemetry, caplog, reported).getMessage()

    assert (
        " type=project.completed budget=1 number=1 trigger=manual outcome=timeout status=- ms=12.8 "
        in line
    )
    assert line.endswith(
        " dns_ms=- connect_ms=- tls_ms=- first_byte_ms=- verdict=failed due_again=-"
    )


def test_neither_lines_nor_metrics_show_urls_secrets_or_contents(
    telemetry: EngineTelemetry, registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    reported = result()
    line = line_of(telemetry, caplog, reported).getMessage()
    metrics = generate_latest(registry).decode()

    assert CANARY not in line + metrics
    assert str(reported.assignment.account_id) not in metrics


def test_attempts_are_counted_by_how_they_ended(
    telemetry: EngineTelemetry, registry: CollectorRegistry
) -> None:
    for reported in (result(), result(), result(**DELIVERED)):
        telemetry.attempted(reported)

    def count(outcome: Outcome) -> float | None:
        return registry.get_sample_value("cuepost_attempts_total", {"outcome": outcome})

    assert [count(each) for each in Outcome] == [1, 2, *[0] * 8]
    assert registry.get_sample_value("cuepost_attempt_seconds_count") == 3
    assert registry.get_sample_value("cuepost_attempt_seconds_sum") == pytest.approx(0.03825)


def test_the_operator_is_told_which_names_have_no_address_and_which_a_denied_one(
    telemetry: EngineTelemetry, registry: CollectorRegistry
) -> None:
    request = Request(
        parse_receiver_url("https://inside.example.com/", EgressPolicy()),
        (("webhook-id", "0193e4a0"),),
        b"",
        1.0,
    )
    for why in (Unusable.NOT_RESOLVED, Unusable.NOT_RESOLVED, Unusable.BLOCKED):
        telemetry.unusable(why, request)
    name = "cuepost_unusable_destinations_total"
    assert registry.get_sample_value(name, {"reason": "dns_error"}) == 2
    assert registry.get_sample_value(name, {"reason": "blocked_destination"}) == 1


def test_only_the_first_attempt_of_an_event_tells_how_late_it_was(
    telemetry: EngineTelemetry, registry: CollectorRegistry
) -> None:
    for reported in (
        result(),
        result(assignment={"number": 2}),
        result(assignment={"budget": 2}),
        result(assignment={"trigger": Trigger.TEST}),
    ):
        telemetry.attempted(reported)

    assert registry.get_sample_value("cuepost_first_attempt_delay_seconds_count") == 1
    assert registry.get_sample_value("cuepost_first_attempt_delay_seconds_sum") == 0.5


def test_ended_deliveries_and_refused_results_are_counted(
    telemetry: EngineTelemetry, registry: CollectorRegistry
) -> None:
    telemetry.attempted(result())
    telemetry.attempted(result(**DELIVERED))
    telemetry.attempted(result(next_step=NextStep(DeliveryStatus.FAILED)))
    telemetry.late(2)

    def ended(status: str) -> float | None:
        return registry.get_sample_value("cuepost_deliveries_ended_total", {"status": status})

    assert (ended("delivered"), ended("failed"), ended("retrying")) == (1, 1, None)
    assert registry.get_sample_value("cuepost_late_results_total") == 2


def test_what_is_in_flight_and_held_is_asked_when_it_is_shown(
    telemetry: EngineTelemetry, registry: CollectorRegistry
) -> None:
    busy = {"in_flight": 3, "held": 40, "stalled": 0, "clock_ahead": -2}
    telemetry.watch(
        in_flight=lambda: busy["in_flight"],
        held=lambda: busy["held"],
        stalled=lambda: busy["stalled"],
        clock_ahead=lambda: busy["clock_ahead"],
    )
    busy["held"], busy["stalled"] = 41, 1

    assert registry.get_sample_value("cuepost_attempts_in_flight") == 3
    assert registry.get_sample_value("cuepost_deliveries_held") == 41
    assert registry.get_sample_value("cuepost_engine_stalled") == 1
    assert registry.get_sample_value("cuepost_clock_ahead_seconds") == -2


class Queue:
    """A store that knows nothing but its backlog."""

    def __init__(self) -> None:
        self.reads = 0
        self.is_there = True
        self.backlog = self

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["Queue"]:
        yield self

    async def waiting(self, now: object) -> Mapping[DeliveryStatus, Waiting]:
        self.reads += 1
        if not self.is_there:
            raise StoreUnavailable("gone for lunch")
        return {
            DeliveryStatus.PENDING: Waiting(self.reads, 90 * SECOND),
            DeliveryStatus.DELIVERING: Waiting(),
            DeliveryStatus.RETRYING: Waiting(),
        }


def backlog_of(queue: Queue, registry: CollectorRegistry, clock: VirtualClock) -> BacklogMetrics:
    return BacklogMetrics(queue, clock, registry)  # type: ignore[arg-type]  # enough of a store


def shown(registry: CollectorRegistry, name: str, state: str) -> float | None:
    return registry.get_sample_value(name, {"state": state})


async def test_the_backlog_is_read_at_most_every_two_seconds(registry: CollectorRegistry) -> None:
    queue, clock = Queue(), VirtualClock()
    backlog = backlog_of(queue, registry, clock)
    for seconds in (0, 1.9, 0.1):
        clock.advance(seconds)
        await backlog.refresh()

    assert queue.reads == 2
    assert shown(registry, "cuepost_deliveries_waiting", "pending") == 2
    assert shown(registry, "cuepost_oldest_due_seconds", "pending") == 90
    assert shown(registry, "cuepost_oldest_due_seconds", "retrying") == 0


async def test_without_the_store_its_metrics_are_missing_and_the_rest_is_shown(
    registry: CollectorRegistry, telemetry: EngineTelemetry, caplog: pytest.LogCaptureFixture
) -> None:
    queue, clock = Queue(), VirtualClock()
    backlog = backlog_of(queue, registry, clock)
    await backlog.refresh()
    queue.is_there = False
    clock.advance(2)
    await backlog.refresh()

    assert shown(registry, "cuepost_deliveries_waiting", "pending") is None
    assert b"cuepost_late_results_total 0.0" in generate_latest(registry)
    assert [record.getMessage() for record in caplog.records] == [
        "event=backlog_not_read operation=metrics sqlstate=- error=gone for lunch"
    ]


async def test_the_tasks_of_the_process_are_counted(registry: CollectorRegistry) -> None:
    TaskMetrics(registry)
    before = registry.get_sample_value("cuepost_tasks")
    assert before is not None
    async with asyncio.TaskGroup() as group:
        group.create_task(anyio.lowlevel.checkpoint())
        assert registry.get_sample_value("cuepost_tasks") == before + 1
