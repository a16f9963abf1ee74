"""What the public API ought to do, in plain Python: the contract's words and nothing of the code.

Receivers answer at once here, so nothing is in flight between two calls.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

MOVES = {
    "queued": {"processing", "failed", "cancelled"},
    "processing": {"ready", "exporting", "failed", "cancelled"},
    "ready": {"exporting", "cancelled"},
    "exporting": {"completed", "failed", "cancelled"},
    "completed": {"exporting"},
    "failed": {"processing", "exporting"},
    "cancelled": {"processing", "exporting"},
}
STAGES = {
    "queued": "processing",
    "processing": "processing",
    "ready": "processing",
    "exporting": "export",
    "completed": "export",
}
EVENTS = {status: f"project.{status}" for status in ("completed", "failed", "ready", "cancelled")}
DEFAULT_EVENTS = {"project.completed", "project.failed"}
PAUSES = (timedelta(seconds=60), timedelta(seconds=300))
OVERLAP = timedelta(hours=24)
MOST_ENDPOINTS = 5
ENDED = {"delivered", "failed", "cancelled"}

Answer = tuple[int, str | None]


@dataclass(slots=True)
class Project:
    name: str
    kind: str
    access_until: datetime | None
    status: str = "queued"
    stage: str = "processing"
    deleted: bool = False
    exported_at: datetime | None = None
    files: tuple[str, ...] = ()

    def has_expired(self, now: datetime) -> bool:
        return self.access_until is not None and self.access_until <= now

    def move(self, to: str, now: datetime, files: tuple[str, ...] | None) -> None:
        self.status, self.stage = to, STAGES.get(to, self.stage)
        if to == "completed":
            self.exported_at = now
            self.files = self.files if files is None else files


@dataclass(slots=True)
class Webhook:
    url: str
    events: set[str]
    description: str
    secret: str
    enabled: bool = True
    previous: str | None = None
    previous_until: datetime | None = None

    def overlaps(self, now: datetime) -> bool:
        return self.previous_until is not None and now < self.previous_until

    def secrets(self, now: datetime) -> list[str]:
        """Those that sign, the newest first."""
        overlapping = self.previous is not None and self.overlaps(now)
        return [self.secret, *([self.previous] if overlapping and self.previous else [])]

    def state(self, webhook_id: str, now: datetime) -> tuple[object, ...]:
        """All that its version stands for."""
        secrets = tuple(self.secrets(now))
        until = self.previous_until if self.overlaps(now) else None
        events = frozenset(self.events)
        return webhook_id, self.url, events, self.description, self.enabled, secrets, until


@dataclass(slots=True)
class Delivery:
    webhook_id: str
    event_id: str
    project_id: str | None
    type: str
    status: str = "pending"
    reason: str | None = None
    budget: int = 1
    attempts: int = 0
    made_in_budget: int = 0
    was_delivered: bool = False
    due: datetime | None = None

    @property
    def is_live(self) -> bool:
        return self.status not in ENDED

    def is_chosen_by(self, status: str | None, *, include_delivered: bool = False) -> bool:
        """Failed ones that were delivered before are left out unless they are asked for."""
        if status == "failed" and self.was_delivered and not include_delivered:
            return False
        return status in (None, self.status)

    def cancel(self, reason: str) -> None:
        self.status, self.reason, self.due = "cancelled", reason, None

    def send_again(self, now: datetime) -> None:
        self.status, self.reason, self.due = "pending", None, now
        self.budget, self.made_in_budget = self.budget + 1, 0

    def attempt(self, now: datetime, *, succeeds: bool) -> None:
        self.attempts += 1
        self.made_in_budget += 1
        if succeeds:
            self.status, self.due, self.was_delivered = "delivered", None, True
        elif self.made_in_budget > len(PAUSES):
            self.status, self.due = "failed", None
        else:
            self.status, self.due = "retrying", now + PAUSES[self.made_in_budget - 1]


@dataclass(frozen=True, slots=True)
class Attempt:
    at: datetime
    url: str
    event_id: str
    secrets: tuple[str, ...]


@dataclass(slots=True)
class Expected:
    """The account as it ought to be, and what receivers ought to have seen."""

    open: bool = True
    projects: dict[str, Project] = field(default_factory=dict)
    webhooks: dict[str, Webhook] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)
    events: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    reports: dict[str, tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    sent: list[Attempt] = field(default_factory=list)

    def find(self, webhook_id: str, event_id: str) -> Delivery | None:
        for each in self.deliveries:
            if (each.webhook_id, each.event_id) == (webhook_id, event_id):
                return each
        return None

    def advance(self, now: datetime) -> None:
        """Makes all attempts up to now, then determines what has expired in that time."""
        while due := [each for each in self.deliveries if each.due is not None and each.due <= now]:
            delivery = min(due, key=lambda each: each.due or now)
            assert delivery.due is not None
            project = self.projects.get(delivery.project_id or "")
            if project is not None and project.has_expired(delivery.due):
                delivery.cancel("project_access_expired")
            else:
                self._attempt(delivery, delivery.due)
        for project_id, project in self.projects.items():
            if project.has_expired(now):
                self.stop("project_access_expired", project_id=project_id)

    def stop(
        self, reason: str, *, webhook_id: str | None = None, project_id: str | None = None
    ) -> None:
        for each in self.deliveries:
            concerned = webhook_id in (None, each.webhook_id)
            if project_id is not None:
                concerned = each.project_id == project_id
            if each.is_live and concerned:
                each.cancel(reason)

    def report(self, milestone: dict[str, Any], now: datetime) -> dict[str, Any]:
        """The answer without the event's id; `event` says whether there has to be one."""
        report_id, project_id = milestone["reportId"], milestone["projectId"]
        content = {name: value for name, value in milestone.items() if value is not None}
        if report_id in self.reports and project_id in self.projects:
            reported, answer = self.reports[report_id]
            return answer if reported == content else _reported(False, "report_id_reused")
        artifacts = milestone.get("artifacts")
        files = None if artifacts is None else tuple(each["name"] for each in artifacts)
        answer = self.move(project_id, milestone["status"], now, files)
        if answer["accepted"]:
            self.reports[report_id] = content, answer
        return answer

    def move(
        self, project_id: str, status: str, now: datetime, files: tuple[str, ...] | None = None
    ) -> dict[str, Any]:
        project = self.projects.get(project_id)
        if project is None:
            return _reported(False, "project_not_found")
        if project.deleted:
            return _reported(True, "project_deleted")
        if status not in MOVES[project.status]:
            return _reported(False, "illegal_transition")
        project.move(status, now, files)
        if status not in EVENTS:
            return _reported(True, "no_event_for_status")
        return _reported(True, self._silence(project, EVENTS[status], now), event=True)

    def _silence(self, project: Project, event_type: str, now: datetime) -> str | None:
        if project.kind == "transcript":
            return "standalone_transcript"
        if project.has_expired(now):
            return "project_access_expired"
        subscribers = self.subscribers(event_type)
        if not subscribers:
            return "not_subscribed"
        stopped = [self.stopped(each) for each in subscribers]
        return None if None in stopped else stopped[0]

    def stopped(self, webhook_id: str) -> str | None:
        """Why nothing may be sent there now; closed access is told before a disabled endpoint."""
        if not self.open:
            return "access_closed"
        return None if self.webhooks[webhook_id].enabled else "endpoint_disabled"

    def subscribers(self, event_type: str) -> list[str]:
        return [key for key, each in self.webhooks.items() if event_type in each.events]

    def happened(
        self, event_id: str, project_id: str, answer: dict[str, Any], now: datetime
    ) -> None:
        """The event has a name now, and its deliveries are on their way."""
        event_type = EVENTS[self.projects[project_id].status]
        self.events[event_id] = (event_type, answer["reason"])
        if answer["reason"] not in (None, "endpoint_disabled", "access_closed"):
            return
        for webhook_id in self.subscribers(event_type):
            made = Delivery(webhook_id, event_id, project_id, event_type, due=now)
            if reason := self.stopped(webhook_id):
                made.cancel(reason)
            self.deliveries.append(made)

    def _attempt(self, delivery: Delivery, at: datetime) -> None:
        webhook = self.webhooks[delivery.webhook_id]
        delivery.attempt(at, succeeds=webhook.url not in self.failing)
        self.sent.append(Attempt(at, webhook.url, delivery.event_id, tuple(webhook.secrets(at))))


def _reported(accepted: bool, reason: str | None, *, event: bool = False) -> dict[str, Any]:
    return {"accepted": accepted, "notified": event and reason is None, "reason": reason} | {
        "event": event
    }
