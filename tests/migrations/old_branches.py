"""Rows of revision 0006 that took every way a delivery can take, beside those of `OldStore`."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.domain.instants import compose, to_millis
from tests.migrations import old_values as old
from tests.migrations.plain_sql import insert, make_days

Row = dict[str, Any]
OTHER_ACCOUNT, OTHER_ENDPOINT = old.fixed(0x2), old.fixed(0x13)
DELETED_ENDPOINT, GONE_ENDPOINT = old.fixed(0x14), old.fixed(0x15)
DEAD_WORKER = old.fixed(0x52)
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Way:
    """`status` is the final one; a live delivery has a `state` in the queue instead."""

    status: str | None = None
    state: str | None = None
    reason: str | None = None
    trigger: str = "automatic"
    account: UUID = old.ACCOUNT
    webhook: UUID = old.ENDPOINT
    # Budget, number and outcome of each.
    attempts: tuple[tuple[int, int, str], ...] = ()
    budget: int = 1
    was_delivered: bool = False
    stop: str | None = None

    @property
    def counted(self) -> int:
        return sum(1 for budget, _, _ in self.attempts if budget)


WAYS: dict[str, Way] = {
    "delivered": Way("delivered", attempts=((1, 1, "delivered"),)),
    "failed": Way("failed", attempts=tuple((1, number, "http_error") for number in (1, 2, 3))),
    "cancelled before it was sent": Way("cancelled", reason="project_deleted"),
    "interrupted, then delivered": Way(
        "delivered", attempts=((0, 1, "interrupted"), (0, 2, "superseded"), (1, 1, "delivered"))
    ),
    "delivered again": Way(
        "delivered",
        trigger="manual",
        budget=2,
        attempts=((1, 1, "delivered"), (2, 1, "delivered")),
        was_delivered=True,
    ),
    "failed when it was sent again": Way(
        "failed",
        trigger="manual",
        budget=2,
        attempts=((1, 1, "delivered"), (2, 1, "tls_error")),
        was_delivered=True,
    ),
    "test": Way("failed", trigger="test", attempts=((1, 1, "blocked_destination"),)),
    "of another account": Way(
        "delivered",
        account=OTHER_ACCOUNT,
        webhook=OTHER_ENDPOINT,
        attempts=((1, 1, "delivered"),),
    ),
    "pending": Way(state="pending"),
    "retrying": Way(state="retrying", attempts=((1, 1, "timeout"),)),
    "sent again": Way(
        state="pending",
        trigger="manual",
        budget=2,
        attempts=((1, 1, "delivered"),),
        was_delivered=True,
    ),
    "in flight": Way(state="delivering", attempts=((1, 1, "dns_error"),)),
    "stopped in flight": Way(state="delivering", stop="access_closed"),
    "of a deleted endpoint": Way(
        "delivered", webhook=DELETED_ENDPOINT, attempts=((1, 1, "delivered"),)
    ),
    # The queue was emptied when the endpoint was deleted; its history leaves in steps.
    "live once, of a deleted endpoint": Way(
        webhook=DELETED_ENDPOINT, attempts=((1, 1, "connect_error"),)
    ),
    "queued for an endpoint that is gone": Way(
        state="retrying", webhook=GONE_ENDPOINT, attempts=((1, 1, "http_error"),)
    ),
}
# No page could show them, and no job would delete them.
LEFT_BEHIND = {"live once, of a deleted endpoint", "queued for an endpoint that is gone"}


@dataclass(frozen=True, slots=True)
class OldBranches:
    """One delivery of each way a day, for so many days before `now`."""

    now: datetime
    days: int = 2

    def at(self, day: int) -> datetime:
        return self.now - timedelta(days=day, minutes=10)

    def id_of(self, name: str, day: int, kind: int = 0x100) -> UUID:
        return compose(to_millis(self.at(day)), kind + list(WAYS).index(name))

    def fill(self, connection: sa.Connection) -> None:
        make_days(connection, *(self.at(day) for day in range(self.days)))
        for table, row in (*self._owners(), *self._history()):
            insert(connection, table, row)

    def _owners(self) -> Iterator[tuple[str, Row]]:
        named = {"name": "Harbour Films", "webhooks_enabled": True, "created_at": self.now}
        for account in (old.ACCOUNT, OTHER_ACCOUNT):
            yield "accounts", {"id": account, **named}
        for account, webhook, deleted in (
            (OTHER_ACCOUNT, OTHER_ENDPOINT, None),
            (old.ACCOUNT, old.ENDPOINT, None),
            (old.ACCOUNT, DELETED_ENDPOINT, self.now),
        ):
            yield "endpoints", self._endpoint(account, webhook, deleted)
        yield "workers", {"id": DEAD_WORKER, "alive_until": self.now - MINUTE}
        yield "lanes", {"webhook_id": old.ENDPOINT, "worker_id": DEAD_WORKER}

    def _history(self) -> Iterator[tuple[str, Row]]:
        for day in range(self.days):
            for name, way in WAYS.items():
                event = self.id_of(name, day, 0x200)
                its = {"account_id": way.account}
                yield "events", its | self._event(event, day)
                yield "deliveries", its | self._delivery(name, day, event)
                if way.state is not None:
                    yield "queue", its | self._queued(name, day, event)
                for place in range(len(way.attempts)):
                    yield "attempts", its | self._attempt(name, day, place)
                yield "reports", its | self._report(name, day, event)
            silent = compose(to_millis(self.at(day)), 0x300)
            unheard = {"account_id": old.ACCOUNT, "reason": "not_subscribed"}
            yield "events", self._event(silent, day) | unheard
            report = self._report("pending", day, silent) | unheard
            yield "reports", report | {"report_id": f"no {day}"}

    def _endpoint(self, account: UUID, webhook: UUID, deleted: datetime | None) -> Row:
        return {
            "account_id": account,
            "id": webhook,
            "url": "" if deleted else "https://hooks.example.com/cue",
            "events": "project.completed",
            "description": "",
            "enabled": deleted is None,
            "created_at": self.now,
            "updated_at": self.now,
            "last_delivered_at": None,
            "failing_since": self.now,
            "deleted_at": deleted,
        }

    def _event(self, event: UUID, day: int) -> Row:
        return {
            "id": event,
            "type": "project.completed",
            "project_id": old.PROJECT,
            "occurred_at": self.at(day),
            "body": event.bytes,
            "reason": None,
        }

    def _delivery(self, name: str, day: int, event: UUID) -> Row:
        way = WAYS[name]
        return {
            "id": self.id_of(name, day),
            "webhook_id": way.webhook,
            "event_id": event,
            "event_type": "project.completed",
            "project_id": old.PROJECT,
            "trigger": way.trigger,
            "final_status": way.status,
            "reason": way.reason,
            "attempt_count": way.counted,
            "budget": way.budget,
            "finished_at": self.at(day) + 5 * MINUTE if way.status else None,
            "delivered_at": self.at(day) + MINUTE if way.was_delivered else None,
        }

    def _queued(self, name: str, day: int, event: UUID) -> Row:
        way = WAYS[name]
        in_budget = [number for budget, number, _ in way.attempts if budget == way.budget]
        return {
            "delivery_id": self.id_of(name, day),
            "webhook_id": way.webhook,
            "event_id": event,
            "state": way.state,
            "due_at": self.at(day) + 5 * MINUTE,
            "trigger": way.trigger,
            "budget": way.budget,
            "attempts_made": len(in_budget),
            "attempt_count": way.counted,
            "lease_token": DEAD_WORKER if way.state == "delivering" else None,
            "stop_reason": way.stop,
        }

    def _attempt(self, name: str, day: int, place: int) -> Row:
        budget, number, outcome = WAYS[name].attempts[place]
        return {
            "delivery_id": self.id_of(name, day),
            "budget": budget,
            "number": number,
            "trigger": WAYS[name].trigger,
            "started_at": self.at(day) + place * MINUTE,
            "duration_ms": 12.5,
            "dns_ms": None,
            "connect_ms": 2.25,
            "tls_ms": None,
            "first_byte_ms": 4.5,
            "signed_with": "whsec_…Hh8",
            "request_headers": b'[["webhook-id","1"]]',
            "response_status": None,
            "response_headers": b"[]",
            "response_body": outcome.encode(),
            "response_truncated": False,
            "outcome": outcome,
            "tls_fault": "certificate_expired" if outcome == "tls_error" else None,
            "url": None,
            "held_by": DEAD_WORKER if outcome == "interrupted" else None,
        }

    def _report(self, name: str, day: int, event: UUID) -> Row:
        return {
            "report_id": f"{name} {day}",
            "event_id": event,
            "notified": True,
            "reason": None,
            "created_at": self.at(day),
            "digest": b"digest",
        }
