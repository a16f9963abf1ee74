"""The list of endpoints: search and order, as the address of the page states them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from cuepost.application.manage_webhooks import EndpointView
from cuepost.domain.account_reference import search_key
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.health import HealthState
from cuepost.interfaces.web.page_context import PageContext

NEWEST = "newest"
NEVER = datetime.min.replace(tzinfo=UTC)
# What needs attention comes first; an endpoint that was switched off on purpose comes last.
_BY_ATTENTION = (
    HealthState.FAILING,
    HealthState.DEGRADED,
    HealthState.UNKNOWN,
    HealthState.HEALTHY,
    HealthState.DISABLED,
)


def called(endpoint: Endpoint) -> str:
    """Its name, or its URL if it has none."""
    return endpoint.description or endpoint.url


def _name(view: EndpointView) -> str:
    return search_key(called(view.endpoint).removeprefix("https://"))


def _attention(view: EndpointView) -> int:
    return _BY_ATTENTION.index(view.health.state)


def _since_delivery(view: EndpointView) -> float:
    return -(view.endpoint.last_delivered_at or NEVER).timestamp()


# Each order with its label and its sort key. Of equals the newest is first, as sorting is stable.
ORDERS: Mapping[str, tuple[str, Callable[[EndpointView], Any]]] = {
    NEWEST: ("Newest first", lambda _: 0),
    "name": ("Name", _name),
    "health": ("Needs attention first", _attention),
    "delivery": ("Last delivery", _since_delivery),
}


@dataclass(frozen=True, slots=True)
class ListChoice:
    """The text that endpoints must contain, and the order of the list."""

    text: str = ""
    order: str = NEWEST

    def __bool__(self) -> bool:
        return bool(self.text) or self.order != NEWEST

    @property
    def without_text(self) -> str:
        """The query that shows all endpoints in the same order."""
        return "" if self.order == NEWEST else f"?{urlencode({'order': self.order})}"

    def of(self, newest_first: Sequence[EndpointView]) -> list[EndpointView]:
        matching = [view for view in newest_first if self._matches(view.endpoint)]
        return sorted(matching, key=ORDERS[self.order][1])

    def _matches(self, endpoint: Endpoint) -> bool:
        """The URL contains the host."""
        wanted = search_key(self.text)
        texts = (endpoint.description, endpoint.url, str(endpoint.id))
        return any(wanted in search_key(each) for each in texts)


def list_choice(context: PageContext) -> ListChoice:
    """An unknown order is ignored rather than refused, because people edit addresses."""
    order = context.query("order")
    return ListChoice(context.query("q"), order if order in ORDERS else NEWEST)
