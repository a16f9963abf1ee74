"""One attempt, from the assignment to its result: sign → guard → send → classify → decide.

Over an open connection an attempt is a chain of callbacks without a task or a future. All other
attempts (new connections, the test inbox, transports of tests) are sent by a coroutine.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cuepost.domain.attempt import Attempt, Outcome, Timings, outcome_of, trigger_of
from cuepost.domain.delivery import DeliveryStatus, TransitionCause, after
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.endpoint import StoredSecret
from cuepost.domain.instants import at_millisecond, to_millis
from cuepost.domain.retry_schedule import RetrySchedule
from cuepost.engine.prepared_targets import PreparedTargets
from cuepost.ports.dispatch import Assignment, NextStep, Result
from cuepost.ports.system import Clock, SecretBox
from cuepost.ports.transport import Exchange, Headers, Request, Transport

Jitter = Callable[[], float]
_DELIVERED = NextStep(after(DeliveryStatus.DELIVERING, TransitionCause.SUCCEEDED))
_BLOCKED = Exchange(0.0, Timings(), fault=Outcome.BLOCKED_DESTINATION)


@dataclass(frozen=True, slots=True)
class Crash:
    """The attempt failed by a bug of this service, not of the receiver.

    The request may have been sent.
    """

    assignment: Assignment
    error: Exception


Done = Callable[[Result | Crash], None]
Spawn = Callable[[Coroutine[Any, Any, None]], object]


@dataclass(slots=True)
class _Signed:
    """An attempt that has begun; `request` is None if the egress policy forbids the URL."""

    assignment: Assignment
    started_at: datetime
    live: Sequence[StoredSecret]
    headers: Headers
    request: Request | None


class AttemptPipeline:
    def __init__(
        self,
        *,
        clock: Clock,
        box: SecretBox,
        policy: EgressPolicy,
        transport: Transport,
        schedule: RetrySchedule,
        jitter: Jitter,
        timeout: timedelta,
        user_agent: str,
    ) -> None:
        self._clock = clock
        self._transport = transport
        self._schedule = schedule
        self._jitter = jitter
        self._timeout_seconds = timeout.total_seconds()
        fixed = (
            ("content-type", "application/json; charset=utf-8"),
            ("user-agent", user_agent),
            ("accept-encoding", "identity"),
        )
        self._targets = PreparedTargets(box, policy, fixed)

    def start(self, assignment: Assignment, done: Done, spawn: Spawn) -> bool:
        """Return False if no connection to the receiver is open; the caller then awaits `run`.

        Otherwise the event loop calls `done` exactly once, after this method has returned.
        `spawn` makes a task for the rare request that has to be sent again.
        """
        try:
            signed = self._sign(assignment)
            answered = partial(self._answered, signed, done, spawn)
            if signed.request is not None:
                return self._transport.start(signed.request, answered)
            asyncio.get_running_loop().call_soon(answered, _BLOCKED)
        except Exception as error:  # noqa: BLE001  # passed to `done`
            asyncio.get_running_loop().call_soon(done, Crash(assignment, error))
        return True

    async def run(self, assignment: Assignment) -> Result | Crash:
        """Make the attempt, opening a connection if necessary."""
        try:
            signed = self._sign(assignment)
        except Exception as error:  # noqa: BLE001  # as in `start`
            return Crash(assignment, error)
        return await self._run(signed)

    def _sign(self, assignment: Assignment) -> _Signed:
        now, target, body = self._clock.now(), assignment.target, assignment.body
        live = [each for each in target.secrets if each.is_live(now)]
        sealed = [each.sealed for each in live]
        prepared = self._targets.of(target.webhook_id, target.url, *sealed)
        timestamp = to_millis(now) // 1000
        headers, message = prepared.signed(assignment.event_id, timestamp, body)
        request = None
        if prepared.url is not None:
            request = Request(prepared.url, headers, body, self._timeout_seconds, message)
        return _Signed(assignment, now, live, headers, request)

    def _answered(
        self, signed: _Signed, done: Done, spawn: Spawn, exchange: Exchange | None
    ) -> None:
        """`exchange` is None if the receiver had closed the connection before the request came."""
        if exchange is None:
            spawn(self._send_again(signed, done))
        else:
            done(self._concluded(signed, exchange))

    async def _send_again(self, signed: _Signed, done: Done) -> None:
        done(await self._run(signed))

    async def _run(self, signed: _Signed) -> Result | Crash:
        try:
            exchange = _BLOCKED
            if signed.request is not None:
                exchange = await self._transport.send(signed.request)
        except Exception as error:  # noqa: BLE001  # as in `start`
            return Crash(signed.assignment, error)
        return self._concluded(signed, exchange)

    def _concluded(self, signed: _Signed, exchange: Exchange) -> Result | Crash:
        try:
            outcome = exchange.fault or outcome_of(exchange.status)
            next_step = self._decide(signed, outcome, exchange.duration_ms)
            return Result(signed.assignment, _attempt(signed, exchange, outcome), next_step)
        except Exception as error:  # noqa: BLE001  # as in `start`
            return Crash(signed.assignment, error)

    def _decide(self, signed: _Signed, outcome: Outcome, duration_ms: float) -> NextStep:
        if outcome is Outcome.DELIVERED:
            return _DELIVERED
        ended_at = signed.started_at + timedelta(milliseconds=duration_ms)
        due = self._schedule.next_attempt_at(signed.assignment.number, ended_at, self._jitter())
        if due is None:
            return NextStep(after(DeliveryStatus.DELIVERING, TransitionCause.BUDGET_SPENT))
        retrying = after(DeliveryStatus.DELIVERING, TransitionCause.ATTEMPT_FAILED)
        return NextStep(retrying, due_at=_rounded_up(due))


def _rounded_up(instant: datetime) -> datetime:
    """Round up to the stored precision: truncated, the instant would be too early."""
    cut = at_millisecond(instant)
    return cut if cut == instant else cut + timedelta(milliseconds=1)


def _attempt(signed: _Signed, exchange: Exchange, outcome: Outcome) -> Attempt:
    assignment, target = signed.assignment, signed.assignment.target
    # Keyword arguments would take five times as long, and this runs for every attempt.
    return Attempt(
        target.account_id,
        assignment.delivery_id,
        assignment.budget,
        assignment.number,
        trigger_of(assignment.trigger, assignment.number),
        signed.started_at,
        exchange.duration_ms,
        exchange.timings,
        tuple([secret.hint for secret in signed.live]),
        signed.headers,
        exchange.status,
        exchange.headers,
        exchange.body,
        exchange.truncated,
        outcome,
        exchange.tls_fault,
        target.url,
    )
