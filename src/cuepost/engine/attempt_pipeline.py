"""One attempt, from the assignment to its result: sign → guard → send → classify → decide."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from cuepost.domain.attempt import Attempt, Outcome, Timings, outcome_of, trigger_of
from cuepost.domain.delivery import Cause, DeliveryStatus, after
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.endpoint import StoredSecret
from cuepost.domain.instants import at_millisecond, to_millis
from cuepost.domain.receiver_url import ReceiverUrl, ReceiverUrlRefused, parse_receiver_url
from cuepost.domain.retry_schedule import RetrySchedule
from cuepost.domain.signing import SigningSecret, signature_header
from cuepost.ports.dispatch import Assignment, Result, Verdict
from cuepost.ports.runtime import Clock, SecretBox
from cuepost.ports.transport import Exchange, Headers, Request, Transport

Jitter = Callable[[], float]


@dataclass(frozen=True, slots=True)
class AttemptPipeline:
    clock: Clock
    box: SecretBox
    policy: EgressPolicy
    transport: Transport
    schedule: RetrySchedule
    jitter: Jitter
    timeout: timedelta
    user_agent: str

    async def run(self, assignment: Assignment) -> Result:
        started_at = self.clock.now()
        live = [each for each in assignment.target.secrets if each.is_live(started_at)]
        headers = self._signed(assignment, live, started_at)
        url = _guarded(assignment.target.url, self.policy)
        exchange = await self._sent(url, headers, assignment.body)
        outcome = exchange.fault or outcome_of(exchange.status)
        ended_at = started_at + timedelta(milliseconds=exchange.duration_ms)
        attempt = _attempt(
            assignment,
            live,
            started_at=started_at,
            headers=headers,
            exchange=exchange,
            outcome=outcome,
        )
        return Result(assignment, attempt, self._decided(assignment, outcome, ended_at))

    def _signed(
        self, assignment: Assignment, live: Sequence[StoredSecret], at: datetime
    ) -> Headers:
        owner = assignment.webhook_id.bytes
        secrets = [SigningSecret(self.box.open(secret.sealed, owner)) for secret in live]
        timestamp = to_millis(at) // 1000
        signatures = signature_header(secrets, assignment.event_id, timestamp, assignment.body)
        return (
            ("content-type", "application/json; charset=utf-8"),
            ("user-agent", self.user_agent),
            ("accept-encoding", "identity"),
            ("webhook-id", str(assignment.event_id)),
            ("webhook-timestamp", str(timestamp)),
            ("webhook-signature", signatures),
        )

    async def _sent(self, url: ReceiverUrl | None, headers: Headers, body: bytes) -> Exchange:
        if url is None:
            return Exchange(0.0, Timings(), fault=Outcome.BLOCKED_DESTINATION)
        return await self.transport.send(Request(url, headers, body, self.timeout.total_seconds()))

    def _decided(self, assignment: Assignment, outcome: Outcome, ended_at: datetime) -> Verdict:
        delivering = DeliveryStatus.DELIVERING
        if outcome is Outcome.DELIVERED:
            return Verdict(after(delivering, Cause.SUCCEEDED))
        due = self.schedule.next_attempt_at(assignment.number, ended_at, self.jitter())
        if due is None:
            return Verdict(after(delivering, Cause.BUDGET_SPENT))
        return Verdict(after(delivering, Cause.ATTEMPT_FAILED), due_at=_rounded_up(due))


def _rounded_up(instant: datetime) -> datetime:
    """To the precision that is stored: cut off, it would be early."""
    cut = at_millisecond(instant)
    return cut if cut == instant else cut + timedelta(milliseconds=1)


@lru_cache(maxsize=4096)
def _guarded(url: str, policy: EgressPolicy) -> ReceiverUrl | None:
    """The policy may have become stricter since the endpoint was stored."""
    try:
        return parse_receiver_url(url, policy)
    except ReceiverUrlRefused:
        return None


def _attempt(
    assignment: Assignment,
    live: Sequence[StoredSecret],
    *,
    started_at: datetime,
    headers: Headers,
    exchange: Exchange,
    outcome: Outcome,
) -> Attempt:
    return Attempt(
        account_id=assignment.account_id,
        delivery_id=assignment.delivery_id,
        budget=assignment.budget,
        number=assignment.number,
        trigger=trigger_of(assignment.trigger, assignment.number),
        started_at=started_at,
        duration_ms=exchange.duration_ms,
        timings=exchange.timings,
        signed_with=tuple(secret.hint for secret in live),
        request_headers=headers,
        response_status=exchange.status,
        response_headers=exchange.headers,
        response_body=exchange.body,
        response_truncated=exchange.truncated,
        outcome=outcome,
        tls_fault=exchange.tls_fault,
        url=assignment.target.url,
    )
