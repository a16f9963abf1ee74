"""What a list of deliveries shows, as it stands in the address of the page."""

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode
from uuid import UUID

from cuepost.application.browse_history import EndFilter
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.event_catalog import BY_NAME
from cuepost.interfaces.web.page_context import PageContext
from cuepost.ports.history import DeliveryFilter

# The value of the filter `delivered`, which includes failed deliveries that were delivered before.
INCLUDED = "included"
NAMES = (
    "status",
    "type",
    "outcome",
    "class",
    "endpoint",
    "project",
    "event",
    "since",
    "until",
    "delivered",
)
CLASSES = ("2xx", "3xx", "4xx", "5xx", "none")


@dataclass(frozen=True, slots=True)
class Chosen:
    """`scope` is the endpoint or project whose page it is; the rest is what people have chosen."""

    deliveries: DeliveryFilter
    end: EndFilter
    before: UUID | None
    given: dict[str, str]

    def query(self, **more: str) -> str:
        return urlencode(self.given | more)


def chosen(context: PageContext, webhook_id: UUID | None) -> Chosen:
    """What cannot be understood is left out, rather than refused: it is an address people edit."""
    given = {name: context.query(name) for name in NAMES if context.query(name)}
    status, outcome, kind = given.get("status"), given.get("outcome"), given.get("type")
    http_class = given.get("class")
    return Chosen(
        DeliveryFilter(
            webhook_id=webhook_id or uuid_in(given.get("endpoint", "")),
            status=DeliveryStatus(status) if status in list(DeliveryStatus) else None,
            event_type=kind if kind in BY_NAME else None,
            project_id=uuid_in(given.get("project", "")),
            event_id=uuid_in(given.get("event", "")),
            since=instant_in(given.get("since", "")),
            until=instant_in(given.get("until", "")),
            include_delivered=given.get("delivered") == INCLUDED,
        ),
        EndFilter(
            Outcome(outcome) if outcome in list(Outcome) else None,
            http_class if http_class in CLASSES else None,
        ),
        uuid_in(context.query("before")),
        given,
    )


def uuid_in(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def instant_in(text: str) -> datetime | None:
    """As a browser's date and time field writes it, in UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
