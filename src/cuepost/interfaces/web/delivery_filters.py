"""The filters of a list of deliveries or events, as the address of the page states them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode
from uuid import UUID

from cuepost.application.browse_history import EndFilter
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.event_catalog import BY_NAME
from cuepost.interfaces.web.page_context import PageContext
from cuepost.interfaces.web.times import in_field
from cuepost.ports.history import DeliveryFilter

# The value of the filter `delivered`, which includes failed deliveries that were delivered before.
INCLUDED = "included"
CLASSES = ("2xx", "3xx", "4xx", "5xx", "none")
RANGES: Mapping[str, tuple[str, timedelta]] = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(hours=24)),
    "7d": ("Last 7 days", timedelta(days=7)),
}


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


def began_within(since: datetime, until: datetime) -> str:
    """The query of a list of the deliveries that began from one whole minute to before another."""
    return urlencode({"since": in_field(since), "until": in_field(until)})


# Each filter, and what makes its text valid.
VALID: Mapping[str, Callable[[str], object]] = {
    "status": lambda text: text in list(DeliveryStatus),
    "type": BY_NAME.__contains__,
    "outcome": lambda text: text in list(Outcome),
    "class": CLASSES.__contains__,
    "endpoint": uuid_in,
    "project": uuid_in,
    "event": uuid_in,
    "range": RANGES.__contains__,
    "since": instant_in,
    "until": instant_in,
    "delivered": INCLUDED.__eq__,
}


@dataclass(frozen=True, slots=True)
class AddressFilters:
    """`given` holds the valid filters of the address as text."""

    given: dict[str, str]
    before: UUID | None

    @property
    def given_since(self) -> datetime | None:
        """Without the time that a range stands for."""
        return instant_in(self.given.get("since", ""))

    def query(self, **more: str) -> str:
        return urlencode(self.given | more)

    def without(self, *names: str) -> str:
        return urlencode({name: text for name, text in self.given.items() if name not in names})

    def toggled(self, name: str, text: str) -> str:
        """The query with this filter set, or without it if it is set already."""
        replaced = (name, "since", "until") if name == "range" else (name,)
        if self.given.get(name) == text:
            return self.without(name)
        kept = {each: value for each, value in self.given.items() if each not in replaced}
        return urlencode(kept | {name: text})


@dataclass(frozen=True, slots=True)
class ListFilters(AddressFilters):
    deliveries: DeliveryFilter
    end: EndFilter


def given_in(context: PageContext, valid: Mapping[str, Callable[[str], object]]) -> dict[str, str]:
    """An invalid value is ignored rather than refused, because people edit addresses."""
    given = {name: context.query(name) for name, fits in valid.items() if fits(context.query(name))}
    if "since" in given:
        given.pop("range", None)
    return given


def since_in(given: Mapping[str, str], now: datetime) -> datetime | None:
    """The beginning of the given range, or the given time."""
    return (
        now - RANGES[given["range"]][1] if "range" in given else instant_in(given.get("since", ""))
    )


def list_filters(context: PageContext, webhook_id: UUID | None) -> ListFilters:
    given = given_in(context, VALID)
    return ListFilters(
        given,
        uuid_in(context.query("before")),
        DeliveryFilter(
            webhook_id=webhook_id or uuid_in(given.get("endpoint", "")),
            status=DeliveryStatus(given["status"]) if "status" in given else None,
            event_type=given.get("type"),
            project_id=uuid_in(given.get("project", "")),
            event_id=uuid_in(given.get("event", "")),
            since=since_in(given, context.site.now()),
            until=instant_in(given.get("until", "")),
            include_delivered="delivered" in given,
        ),
        EndFilter(
            Outcome(given["outcome"]) if "outcome" in given else None,
            given.get("class"),
        ),
    )
