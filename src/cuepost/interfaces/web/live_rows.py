"""Changed rows of a list of deliveries, as server-sent events."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from starlette.responses import Response, StreamingResponse

from cuepost.application.browse_history import DeliveryView
from cuepost.application.manage_webhooks import EndpointView
from cuepost.domain.errors import Refused
from cuepost.interfaces.web.deliveries import ALL, rows
from cuepost.interfaces.web.delivery_filters import list_filters
from cuepost.interfaces.web.endpoints import MOST_SHOWN, names_of
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.ports.records import Page
from cuepost.ports.store import Contention, StoreUnavailable, Transaction

EVERY_SECONDS = 1.0
# A browser reconnects by itself. A bounded stream checks the session again from the start.
LONGEST_ROUNDS = 600
MOST_AT_ONCE = 200
MOST_OF_ACCOUNT = 20


class LiveRows:
    def __init__(self) -> None:
        self._open: Counter[UUID] = Counter()

    async def stream(self, context: PageContext) -> Response:
        of_account = self._open[context.caller.account]
        if of_account >= MOST_OF_ACCOUNT or self._open.total() >= MOST_AT_ONCE:
            return Response(
                "Too many pages are live; reload this page instead.",
                503,
                {"retry-after": str(context.service.retry_after())},
            )
        return StreamingResponse(self._events(context), media_type="text/event-stream")

    async def _events(self, context: PageContext) -> AsyncIterator[str]:
        account = context.caller.account
        self._open[account] += 1
        try:
            yield "retry: 2000\n\n"
            async for part in self._changes(context):
                yield part
        finally:
            self._open[account] -= 1
            if not self._open[account]:
                del self._open[account]

    async def _changes(self, context: PageContext) -> AsyncIterator[str]:
        shown: dict[UUID, DeliveryView] = {}
        clock = context.service.sign_in.clock
        for _ in range(LONGEST_ROUNDS):
            if context.site.is_stopping():
                return
            try:
                found = await self._look(context)
            except Refused:
                return
            except (StoreUnavailable, Contention):
                found = None
            if found is not None:
                views, endpoints = found
                for view in reversed(views):
                    if shown.get(view.delivery.id) != view:
                        row = _row(context, view, endpoints)
                        yield f"event: row\ndata: {_message(view.delivery.id, row)}\n\n"
                shown = {view.delivery.id: view for view in views}
            yield ": keep-alive\n\n"
            await clock.wait(EVERY_SECONDS)

    async def _look(
        self, context: PageContext
    ) -> tuple[Sequence[DeliveryView], Sequence[EndpointView]]:
        """The newest first; refused when the session or the account's access has ended."""

        async def current(transaction: Transaction) -> Sequence[EndpointView]:
            context.signed_in = await context.service.sign_in.signed_in(
                transaction, context.cookie, context.address
            )
            return await context.service.webhooks.page(
                transaction, context.caller, Page(MOST_SHOWN)
            )

        endpoints = await context.see(current)
        filters = list_filters(context, None)
        found = await context.browse(lambda transaction: rows(context, transaction, filters))
        return found.deliveries, endpoints


def _row(context: PageContext, each: DeliveryView, endpoints: Sequence[EndpointView]) -> str:
    return context.html(
        "deliveries/row.html",
        each=each,
        urls={view.endpoint.id: view.endpoint.url for view in endpoints},
        names=names_of(endpoints),
        of_endpoint=bool(context.query("bare")),
    )


def _message(delivery_id: UUID, html: str) -> str:
    return json.dumps({"id": str(delivery_id), "html": html})


ROUTES = (PageRoute(f"{ALL}/live", get=LiveRows().stream, has_deadline=False),)
