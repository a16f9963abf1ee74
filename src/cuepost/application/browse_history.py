"""Reads the history: deliveries with their attempts, events, and the audit trail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from cuepost.application.search_audit import Trail, search_audit
from cuepost.domain.access import Caller, Scope
from cuepost.domain.account_reference import search_key
from cuepost.domain.attempt import Attempt, Outcome, last_of
from cuepost.domain.delivery import Delivery
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.errors import NotFound
from cuepost.domain.event import Event
from cuepost.domain.project import Project
from cuepost.ports.history import AttemptFigures, DeliveryFilter, EventFilter
from cuepost.ports.records import AuditFilter, Page
from cuepost.ports.store import Transaction


@dataclass(frozen=True, slots=True)
class DeliveryView:
    delivery: Delivery
    last_attempt: Attempt | None


@dataclass(frozen=True, slots=True)
class DeliveryDetail:
    delivery: Delivery
    event: Event
    attempts: Sequence[Attempt]

    @property
    def last_attempt(self) -> Attempt | None:
        return last_of(self.attempts)


@dataclass(frozen=True, slots=True)
class EventView:
    """An event and its deliveries."""

    event: Event
    deliveries: Sequence[Delivery]


@dataclass(frozen=True, slots=True)
class EndFilter:
    """Selects by the last attempt; None selects everything."""

    outcome: Outcome | None = None
    http_class: str | None = None

    def __bool__(self) -> bool:
        return self.outcome is not None or self.http_class is not None

    def matches(self, attempt: AttemptFigures) -> bool:
        return (self.outcome in (None, attempt.outcome)) and (
            self.http_class in (None, class_of(attempt))
        )


@dataclass(frozen=True, slots=True)
class Searched:
    """What was found, and the id after which to continue, if there may be more.

    That id may be older than the last delivery found.
    """

    deliveries: Sequence[DeliveryView]
    further: UUID | None


@dataclass(frozen=True, slots=True)
class Found:
    """What an id belongs to; at most one field is set."""

    delivery: Delivery | None = None
    event_id: UUID | None = None
    project_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class NamedObjects:
    """Endpoints whose URL or description contains a text, and projects that it names."""

    endpoints: Sequence[Endpoint] = ()
    projects: Sequence[Project] = ()


SEARCHED_AT_ONCE = 150
# All projects are searched by the beginning of their names; of the newest, the rest as well.
NAMES_SEARCHED = 1000
MOST_NAMED = 20
MOST_SEARCHED = 300


class BrowseHistory:
    async def deliveries(
        self, transaction: Transaction, caller: Caller, chosen: DeliveryFilter, page: Page
    ) -> list[DeliveryView]:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        if chosen.webhook_id is not None:
            await self._require_endpoint(transaction, account_id, chosen.webhook_id)
        found = await transaction.deliveries.page(account_id, chosen, page)
        return await with_last_attempts(transaction, account_id, found)

    async def search(
        self,
        transaction: Transaction,
        caller: Caller,
        chosen: DeliveryFilter,
        end: EndFilter,
        page: Page,
    ) -> Searched:
        """Deliveries whose last attempt matches; at most about MOST_SEARCHED are examined."""
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        if chosen.webhook_id is not None:
            await self._require_endpoint(transaction, account_id, chosen.webhook_id)
        matching: list[Delivery] = []
        before, examined, step = page.before, 0, SEARCHED_AT_ONCE if end else page.limit + 1
        while len(matching) <= page.limit and examined < MOST_SEARCHED:
            found = await transaction.deliveries.page(account_id, chosen, Page(step, before))
            matching += await self._matching(transaction, account_id, found, end)
            examined += len(found)
            if len(found) < step:
                before = None
                break
            before = found[-1].id
        shown = matching[: page.limit]
        further = shown[-1].id if len(matching) > page.limit else before
        return Searched(await with_last_attempts(transaction, account_id, shown), further)

    async def find(self, transaction: Transaction, caller: Caller, wanted: UUID) -> Found:
        """Find the delivery, event or project with this id."""
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        delivery = await transaction.deliveries.get(account_id, wanted)
        if delivery is not None:
            return Found(delivery=delivery)
        if await transaction.events.get(account_id, wanted) is not None:
            return Found(event_id=wanted)
        if await transaction.projects.get(account_id, wanted) is not None:
            return Found(project_id=wanted)
        return Found()

    async def find_named(self, transaction: Transaction, caller: Caller, text: str) -> NamedObjects:
        """Ignoring case: projects whose name begins with it, and the newest that contain it."""
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        wanted, newest = search_key(text.strip()), Page(NAMES_SEARCHED)
        if not wanted or not wanted.isprintable():
            return NamedObjects()
        endpoints = await transaction.endpoints.page(account_id, newest)
        found = await transaction.projects.search(account_id, wanted, MOST_NAMED)
        known = {each.id for each in found}
        if len(found) < MOST_NAMED:
            projects = await transaction.projects.page(account_id, newest)
            found += [
                each
                for each in projects
                if each.id not in known and wanted in search_key(each.name)
            ]
        return NamedObjects(
            [
                each
                for each in endpoints
                if wanted in each.url.casefold() or wanted in each.description.casefold()
            ][:MOST_NAMED],
            found[:MOST_NAMED],
        )

    async def delivery(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID, delivery_id: UUID
    ) -> DeliveryDetail:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        delivery = await transaction.deliveries.get(account_id, delivery_id)
        if delivery is None or delivery.webhook_id != webhook_id:
            raise NotFound
        event = await transaction.events.get(account_id, delivery.event_id)
        if event is None:
            raise NotFound
        attempts = await transaction.attempts.of_delivery(account_id, delivery_id)
        return DeliveryDetail(delivery, event, attempts)

    async def events(
        self, transaction: Transaction, caller: Caller, chosen: EventFilter, page: Page
    ) -> list[EventView]:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        events = await transaction.events.page(account_id, chosen, page)
        deliveries = await transaction.deliveries.of_events(
            account_id, [event.id for event in events]
        )
        return [EventView(event, _of(event, deliveries)) for event in events]

    async def event(self, transaction: Transaction, caller: Caller, event_id: UUID) -> EventView:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        event = await transaction.events.get(account_id, event_id)
        if event is None:
            raise NotFound
        deliveries = await transaction.deliveries.of_events(account_id, [event_id])
        return EventView(event, _of(event, deliveries))

    async def audit(
        self, transaction: Transaction, caller: Caller, chosen: AuditFilter, page: Page
    ) -> Trail:
        caller.require(Scope.WEBHOOKS_MANAGE)
        return await search_audit(transaction, caller.account, chosen, page)

    async def _matching(
        self,
        transaction: Transaction,
        account_id: UUID,
        found: Sequence[Delivery],
        end: EndFilter,
    ) -> Sequence[Delivery]:
        if not end:
            return found
        figures = await transaction.attempts.figures_of(account_id, [each.id for each in found])
        last = {attempt.delivery_id: attempt for attempt in figures}
        return [each for each in found if each.id in last and end.matches(last[each.id])]

    async def _require_endpoint(
        self, transaction: Transaction, account_id: UUID, webhook_id: UUID
    ) -> None:
        if await transaction.endpoints.get(account_id, webhook_id) is None:
            raise NotFound


async def with_last_attempts(
    transaction: Transaction, account_id: UUID, deliveries: Sequence[Delivery]
) -> list[DeliveryView]:
    asked = [delivery.id for delivery in deliveries]
    last = await transaction.attempts.last_of(account_id, asked) if asked else {}
    return [DeliveryView(delivery, last.get(delivery.id)) for delivery in deliveries]


def class_of(attempt: AttemptFigures) -> str:
    """`2xx` and so on, or `none` where no answer came."""
    return "none" if attempt.status is None else f"{attempt.status // 100}xx"


def _of(event: Event, deliveries: Mapping[UUID, Sequence[Delivery]]) -> Sequence[Delivery]:
    return deliveries.get(event.id, ())
