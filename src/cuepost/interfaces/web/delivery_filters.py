"""The filters of a list of deliveries, as the address of the page states them."""

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
class ListFilters:
    """`given` holds the filters of the address as text, also those that were not understood."""

    deliveries: DeliveryFilter
    end: EndFilter
    before: UUID | None
    given: dict[str, str]

    def query(self, **more: str) -> str:
        return urlencode(self.given | more)


def list_filters(context: PageContext, webhook_id: UUID | None) -> ListFilters:
    """An invalid value is ignored rather than refused, because people edit addresses."""
    given = {name: context.query(name) for name in NAMES if context.query(name)}
    status, outcome, kind = given.get("status"), given.get("outcome"), given.get("type")
    http_class = given.get("class")
    return ListFilters(
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
    """A value of a browser's date and time field; without an offset it is UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
