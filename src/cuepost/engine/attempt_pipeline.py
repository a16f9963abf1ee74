"""One attempt, from the assignment to its result: sign → guard → send → classify → decide.

Over an open connection an attempt is a chain of callbacks without a task or a future. All other
attempts (new connections, the test inbox, transports of tests) are sent by a coroutine.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

from cuepost.domain.attempt import Attempt, Outcome, Timings, outcome_of, trigger_of
from cuepost.domain.delivery import DeliveryStatus, TransitionCause, after
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.http_message import message_template
from cuepost.domain.instants import at_millisecond, to_millis
from cuepost.domain.receiver_url import ReceiverUrl, ReceiverUrlRefused, parse_receiver_url
from cuepost.domain.retry_schedule import RetrySchedule
from cuepost.domain.signing import Signer, SigningSecret
from cuepost.ports.dispatch import Assignment, NextStep, Result
from cuepost.ports.system import Clock, SecretBox
from cuepost.ports.transport import Exchange, Headers, Request, Transport
from cuepost.tuning import PREPARED_TARGETS

Jitter = Callable[[], float]
_DELIVERED = NextStep(after(DeliveryStatus.DELIVERING, TransitionCause.SUCCEEDED))
_BLOCKED = Exchange(0.0, Timings(), fault=Outcome.BLOCKED_DESTINATION)
_VARYING = ("webhook-id", "webhook-timestamp", "webhook-signature")


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
    signed_with: tuple[str, ...]
    headers: Headers
    request: Request | None


@dataclass(frozen=True, slots=True)
class PreparedTarget:
    """What all attempts to one endpoint share; `url` is None if the egress policy forbids it."""

    url: ReceiverUrl | None
    template: bytes
    signers: Sequence[Signer]
    fixed: Headers

    def signed(self, event_id: UUID, timestamp: int, body: bytes) -> tuple[Headers, bytes]:
        """The headers of one request, and the complete request as it is sent."""
        identifier, second = str(event_id), str(timestamp)
        id_bytes, second_bytes = identifier.encode(), second.encode()
        content = b"%b.%b.%b" % (id_bytes, second_bytes, body)
        signatures = " ".join([signer.sign(content) for signer in self.signers])
        headers = (
            *self.fixed,
            ("webhook-id", identifier),
            ("webhook-timestamp", second),
            ("webhook-signature", signatures),
        )
        if not self.template:
            return headers, b""
        values = (id_bytes, second_bytes, signatures.encode(), len(body), body)
        return headers, self.template % values


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
        self._box = box
        self._policy = policy
        self._transport = transport
        self._schedule = schedule
        self._jitter = jitter
        self._timeout_seconds = timeout.total_seconds()
        self._fixed = (
            ("content-type", "application/json; charset=utf-8"),
            ("user-agent", user_agent),
            ("accept-encoding", "identity"),
        )
        # The key of an entry is everything that it is made of, so none has to be invalidated.
        self._prepared = lru_cache(PREPARED_TARGETS)(self._prepare)

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
        prepared = self._prepared(target.webhook_id, target.url, *sealed)
        timestamp = to_millis(now) // 1000
        headers, message = prepared.signed(assignment.event_id, timestamp, body)
        request = None
        if prepared.url is not None:
            request = Request(prepared.url, headers, body, self._timeout_seconds, message)
        hints = tuple([each.hint for each in live])
        return _Signed(assignment, now, hints, headers, request)

    def _prepare(self, webhook_id: UUID, url: str, *sealed: bytes) -> PreparedTarget:
        owner = webhook_id.bytes
        signers = [Signer(SigningSecret(self._box.open(each, owner))) for each in sealed]
        allowed, template = None, b""
        # The policy may have become stricter since the endpoint was stored.
        with suppress(ReceiverUrlRefused):
            allowed = parse_receiver_url(url, self._policy)
        if allowed is not None and allowed.inbox is None:
            template = message_template(allowed, self._fixed, _VARYING)
        return PreparedTarget(allowed, template, signers, self._fixed)

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
        assignment, target = signed.assignment, signed.assignment.target
        try:
            outcome = exchange.fault or outcome_of(exchange.status)
            delivered = outcome is Outcome.DELIVERED
            next_step = _DELIVERED if delivered else self._after_failure(signed, exchange)
            # Keyword arguments would take five times as long, and this runs for every attempt.
            attempt = Attempt(
                target.account_id,
                assignment.delivery_id,
                assignment.budget,
                assignment.number,
                trigger_of(assignment.trigger, assignment.number),
                signed.started_at,
                exchange.duration_ms,
                exchange.timings,
                signed.signed_with,
                signed.headers,
                exchange.status,
                exchange.headers,
                exchange.body,
                exchange.truncated,
                outcome,
                exchange.tls_fault,
                target.url,
            )
            return Result(assignment, attempt, next_step)
        except Exception as error:  # noqa: BLE001  # as in `start`
            return Crash(assignment, error)

    def _after_failure(self, signed: _Signed, exchange: Exchange) -> NextStep:
        ended_at = signed.started_at + timedelta(milliseconds=exchange.duration_ms)
        due = self._schedule.next_attempt_at(signed.assignment.number, ended_at, self._jitter())
        if due is None:
            return NextStep(after(DeliveryStatus.DELIVERING, TransitionCause.BUDGET_SPENT))
        retrying = after(DeliveryStatus.DELIVERING, TransitionCause.ATTEMPT_FAILED)
        return NextStep(retrying, due_at=_rounded_up(due))


def _rounded_up(instant: datetime) -> datetime:
    """Round up to the stored precision: truncated, the instant would be too early."""
    cut = at_millisecond(instant)
    return cut if cut == instant else cut + timedelta(milliseconds=1)
