"""Alerts: an endpoint fails, or its backlog grows; one from the start of it to its end."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from cuepost.domain.event_catalog import ENDPOINT_FAILING, ENDPOINT_RECOVERED
from cuepost.domain.mail import Message

BACKLOG_FROM = timedelta(minutes=10)
"""A delivery that has been due for this long opens an alert."""
BACKLOG_UNTIL = timedelta(minutes=1)
"""Once the oldest one has been due for less than this, the alert ends."""
MAIL_LIFE = timedelta(days=3)
"""An e-mail that could not be sent for this long is given up."""
OPENED, ENDED = 1, 2
"""The two changes of an alert, each of which is announced once."""


class AlertKind(StrEnum):
    FAILING = "failing"
    BACKLOG = "backlog"


@dataclass(frozen=True, slots=True)
class Alert:
    """`changes` are those that are to be announced, `announced` those that were."""

    account_id: UUID
    webhook_id: UUID
    kind: AlertKind
    since: datetime
    finished_at: datetime | None = None
    changes: int = OPENED
    announced: int = 0

    @property
    def next_change(self) -> int:
        return self.announced + 1


EVENTS = {OPENED: ENDPOINT_FAILING, ENDED: ENDPOINT_RECOVERED}


def event_of(alert: Alert, change: int) -> str | None:
    """The type of the operational event; of backlogs there are none."""
    return EVENTS[change] if alert.kind is AlertKind.FAILING else None


@dataclass(frozen=True, slots=True)
class AlertMail:
    """One change of an alert, to one person, who has not got it yet."""

    account_id: UUID
    webhook_id: UUID
    kind: AlertKind
    since: datetime
    number: int
    user_id: UUID
    due_at: datetime
    attempts_made: int = 0

    def is_given_up(self, now: datetime) -> bool:
        return now >= self.since + MAIL_LIFE and self.attempts_made > 0


def message(mail: AlertMail, host: str, page_url: str, at: str) -> Message:
    """`at` is when the alert began."""
    said = _SAID[mail.kind, mail.number].format(host=host, at=at)
    return Message(
        f"[cuepost] {_SUBJECTS[mail.kind, mail.number].format(host=host)}",
        f"{said}\n\n{page_url}\n\nThis message is sent once for each change. To get no more of "
        "them, switch off alerts by e-mail in the settings of your account.\n",
    )


_SUBJECTS = {
    (AlertKind.FAILING, OPENED): "Deliveries to {host} are failing",
    (AlertKind.FAILING, ENDED): "{host} has recovered",
    (AlertKind.BACKLOG, OPENED): "A backlog is growing for {host}",
    (AlertKind.BACKLOG, ENDED): "The backlog for {host} is gone",
}
_SAID = {
    (AlertKind.FAILING, OPENED): "Deliveries to the webhook endpoint at {host} have been failing "
    "since {at}. Failed deliveries can be sent again once the cause is fixed.",
    (AlertKind.FAILING, ENDED): "The webhook endpoint at {host}, which had been failing since "
    "{at}, acknowledges deliveries again. Those that failed can be sent again.",
    (AlertKind.BACKLOG, OPENED): "Deliveries to the webhook endpoint at {host} have been waiting "
    "since {at}: it answers more slowly than events happen.",
    (AlertKind.BACKLOG, ENDED): "Deliveries to the webhook endpoint at {host}, which had been "
    "waiting since {at}, are sent without delay again.",
}
