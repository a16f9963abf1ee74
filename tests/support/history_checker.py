"""Holds the promises against what really happened.

It is fed every acknowledgement of the API, every request that a receiver saw, and the final store,
and lists each broken promise by its number. The same checker serves the simulation, the kill loops
and the benchmarks.
"""

import base64
import hmac
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.history_facts import (
    LEEWAY,
    PRECISION,
    Look,
    SecretLife,
    Seen,
    Stop,
    StoredAttempt,
    StoredDelivery,
    spellings,
)

__all__ = ["History", "SecretLife", "Seen", "Stop", "StoredAttempt", "StoredDelivery"]

ATTEMPTS_PER_BUDGET = 3
# They count for no budget.
UNCOUNTED = ("interrupted", "superseded")
# Receivers refuse what was signed longer ago, or in the future.
TOLERANCE = 300.0


@dataclass(slots=True)
class History:
    """`promised` are (event, endpoint) pairs that must have a delivery while the endpoint stands.

    `lives` makes signatures exact, `stops` and `project_of` are for what must not be sent, `cap`
    for how much at once, `owners` and `looks` for what is whose, `shown` for what people and
    machines can read; without them those promises are not looked at. `sees_all` says that whatever
    was sent is in `seen`, also what reached no one; `undisturbed` that nothing has happened for
    which anything may be sent again. `keeps_attempts` is false for senders that keep no record.
    """

    acknowledged: set[str] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)
    deliveries: list[StoredDelivery] = field(default_factory=list)
    secrets: dict[str, list[str]] = field(default_factory=dict)
    pauses: tuple[float, ...] = (60.0, 300.0)
    promised: set[tuple[str, str]] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    lives: dict[str, list[SecretLife]] = field(default_factory=dict)
    stops: list[Stop] = field(default_factory=list)
    project_of: dict[str, str] = field(default_factory=dict)
    cap: int | None = None
    owners: dict[str, str] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    sees_all: bool = False
    undisturbed: bool = False
    keeps_attempts: bool = True

    def broken_promises(self) -> list[str]:
        return [
            *self._lost(),
            *self._unseen(),
            *self._unsigned(),
            *self._altered(),
            *self._too_many_or_too_early(),
            *self._unrecorded(),
            *self._sent_after_a_stop(),
            *self._wrongly_signed(),
            *self._crowded(),
            *self._strangers(),
            *self._given_away(),
        ]

    def duplicates(self) -> int:
        """How often a receiver got an event again although it had acknowledged it before."""
        counts = Counter(seen.key for seen in self.seen if seen.is_taken)
        return sum(count - 1 for count in counts.values())

    def _lost(self) -> Iterator[str]:
        stored = {(each.event_id, each.webhook_id) for each in self.deliveries}
        events = {event_id for event_id, _ in stored}
        for event_id in sorted(self.acknowledged - events):
            yield f"I1 event {event_id} was acknowledged and has no delivery"
        for event_id, webhook_id in sorted(self.promised - stored):
            if webhook_id not in self.gone:
                yield f"I1 event {event_id} has no delivery to {webhook_id}"
        for delivery in self.deliveries:
            if not _has_ended_well(delivery):
                yield f"I1 delivery {delivery.id} is {delivery.status} for no good reason"

    def _unseen(self) -> Iterator[str]:
        taken = {seen.key for seen in self.seen if seen.is_taken}
        for delivery in self.deliveries:
            if delivery.status == "delivered" and _key(delivery) not in taken:
                yield f"I2 delivery {delivery.id} is marked delivered, and no one acknowledged it"

    def _unsigned(self) -> Iterator[str]:
        for seen in self.seen:
            known = self.secrets.get(seen.webhook_id, ())
            if seen.webhook_id not in self.lives and not signature_fits(seen, known):
                yield f"I2 event {seen.event_id} came without a valid signature"
            old = seen.sent_at - int(seen.headers["webhook-timestamp"])
            if abs(old) > TOLERANCE:
                yield f"I2 event {seen.event_id} came with a timestamp that is {old} s old"

    def _altered(self) -> Iterator[str]:
        bodies: dict[str, set[bytes]] = defaultdict(set)
        for seen in self.seen:
            bodies[seen.event_id].add(seen.body)
        for event_id, different in bodies.items():
            if len(different) > 1:
                yield f"I3 event {event_id} was sent with {len(different)} different bodies"
        stored = {_key(each) for each in self.deliveries}
        for webhook_id, event_id in sorted({seen.key for seen in self.seen} - stored):
            if webhook_id not in self.gone:
                yield f"I3 {event_id} was sent to {webhook_id}, and no such delivery is known"

    def _too_many_or_too_early(self) -> Iterator[str]:
        for delivery in self.deliveries:
            budgets: dict[int, list[StoredAttempt]] = defaultdict(list)
            for attempt in delivery.attempts:
                if attempt.outcome not in UNCOUNTED:
                    budgets[attempt.budget].append(attempt)
                elif attempt.budget:
                    yield f"I4 delivery {delivery.id} counts an attempt that is {attempt.outcome}"
            for budget, made in budgets.items():
                attempts = sorted(made, key=lambda each: each.number)
                numbers = [each.number for each in attempts]
                if len(numbers) > ATTEMPTS_PER_BUDGET or numbers != list(
                    range(1, len(numbers) + 1)
                ):
                    yield f"I4 delivery {delivery.id} made the attempts {numbers} in {budget}"
                yield from self._early(delivery.id, attempts)

    def _early(self, delivery_id: str, attempts: Sequence[StoredAttempt]) -> Iterator[str]:
        for before, after, pause in zip(attempts, attempts[1:], self.pauses, strict=False):
            due = before.started_at + before.duration_ms / 1000 + pause
            early = due - after.started_at
            if early > PRECISION:
                yield f"I4 attempt {after.number} of {delivery_id} was {early} s early"

    def _unrecorded(self) -> Iterator[str]:
        """An interrupted attempt may have been sent or not; every other one is one request."""
        counts = Counter(seen.key for seen in self.seen)
        for delivery in self.deliveries if self.keeps_attempts else ():
            sent, recorded = counts[_key(delivery)], len(delivery.attempts)
            surely = sum(each.outcome != "interrupted" for each in delivery.attempts)
            if sent > recorded:
                yield f"I10 delivery {delivery.id} was sent {sent} times, {recorded} are on record"
            elif self.sees_all and sent < surely:
                yield f"I10 delivery {delivery.id} was sent {sent} times, {surely} are on record"
            for attempt in delivery.attempts:
                if self.undisturbed and attempt.outcome in UNCOUNTED:
                    yield f"I4 delivery {delivery.id} was {attempt.outcome}, and nothing happened"

    def _sent_after_a_stop(self) -> Iterator[str]:
        concerned: dict[str | None, list[Stop]] = defaultdict(list)
        for stop in self.stops:
            concerned[stop.webhook_id or stop.project_id].append(stop)
        for seen in self.seen:
            for subject in (seen.webhook_id, self.project_of.get(seen.event_id)):
                for stop in concerned[subject]:
                    if stop.forbids(seen):
                        late = seen.at - stop.since
                        yield f"I5 event {seen.event_id} was sent {late} s after {stop}"

    def _wrongly_signed(self) -> Iterator[str]:
        for seen in self.seen:
            lives = self.lives.get(seen.webhook_id)
            if lives is None:
                continue
            sent = seen.headers["webhook-signature"]
            if sent not in {_signatures(seen, known) for known in _known(lives, seen.at)}:
                count = len(sent.split(" "))
                yield f"I6 event {seen.event_id} came with {count} signatures"

    def _crowded(self) -> Iterator[str]:
        if self.cap is None:
            return
        moves: dict[str, list[tuple[float, int]]] = defaultdict(list)
        for seen in self.seen:
            if seen.ended_at is not None and seen.ended_at > seen.at:
                moves[seen.webhook_id] += [(seen.at, 1), (seen.ended_at, -1)]
        for webhook_id, steps in moves.items():
            in_flight = most = 0
            for _, step in sorted(steps):
                in_flight += step
                most = max(most, in_flight)
            if most > self.cap:
                yield f"I7 endpoint {webhook_id} had {most} attempts in flight"

    def _strangers(self) -> Iterator[str]:
        for look in self.looks:
            owners = {self.owners[each] for each in look.ids if each in self.owners}
            if owners - {look.viewer}:
                yield f"I8 {look.viewer} was shown {look.kind} {look.ids} of {owners}"
        for webhook_id, event_id in sorted({seen.key for seen in self.seen}):
            if len({self.owners.get(webhook_id), self.owners.get(event_id)} - {None}) > 1:
                yield f"I8 event {event_id} went to {webhook_id}, which is someone else's"

    def _given_away(self) -> Iterator[str]:
        known = {life.secret for lives in self.lives.values() for life in lives}
        known |= {secret for some in self.secrets.values() for secret in some}
        for place, text in self.shown.items():
            if any(each in text for secret in known for each in spellings(secret)):
                yield f"I9 a secret is to be read in {place}"


def signature_fits(seen: Seen, secrets: Sequence[str]) -> bool:
    """An independent verification, after the text of the convention."""
    sent = seen.headers["webhook-signature"].split(" ")
    return any(_signature(seen, secret) in sent for secret in secrets)


def _known(lives: Sequence[SecretLife], at: float) -> Iterator[list[SecretLife]]:
    """What the sender may have known by then, the newest first: what held in the last moment.

    In one instant a secret may come and the one before it go; it may have looked in between.
    """
    begins = [(life.since, False, place) for place, life in enumerate(lives)]
    ends = [(life.cut, True, place) for place, life in enumerate(lives)]
    live: dict[int, SecretLife] = {}
    for instant, is_end, place in sorted(begins + ends):
        if instant > at:
            break
        if instant > at - LEEWAY:
            yield _newest_first(live)
        if is_end:
            live.pop(place, None)
        else:
            live[place] = lives[place]
    yield _newest_first(live)


def _newest_first(live: Mapping[int, SecretLife]) -> list[SecretLife]:
    return [life for _, life in sorted(live.items(), reverse=True)]


def _signatures(seen: Seen, known: Sequence[SecretLife]) -> str:
    signing = [life for life in known if life.until > seen.sent_at]
    return " ".join(_signature(seen, life.secret) for life in signing)


def _signature(seen: Seen, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    message = f"{seen.event_id}.{seen.headers['webhook-timestamp']}.".encode()
    digest = hmac.new(key, message + seen.body, "sha256").digest()
    return "v1," + base64.b64encode(digest).decode()


def _key(delivery: StoredDelivery) -> tuple[str, str]:
    return delivery.webhook_id, delivery.event_id


def _has_ended_well(delivery: StoredDelivery) -> bool:
    if delivery.status == "failed":
        last = max((each.budget for each in delivery.attempts), default=0)
        made = sum(each.budget == last for each in delivery.attempts)
        return made == ATTEMPTS_PER_BUDGET
    return delivery.status == "delivered" or (
        delivery.status == "cancelled" and delivery.reason is not None
    )
