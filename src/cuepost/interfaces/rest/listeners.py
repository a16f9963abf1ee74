"""Calls for those who follow the account's events: `cuepost listen`, or a program like it."""

from typing import Any

from cuepost.application.service import Service
from cuepost.domain.access import Scope
from cuepost.domain.errors import ListenerLimitReached, PositionUnknown
from cuepost.interfaces.rest.answers import Rendered, Reply
from cuepost.interfaces.rest.operation import Call, Context, Nothing, Operation
from cuepost.interfaces.rest.running import changing, reading
from cuepost.interfaces.wire_models.listeners import (
    Acknowledge,
    Listener,
    ListenerList,
    RegisterListener,
    StreamedEvent,
    StreamedEvents,
    StreamQuery,
)
from cuepost.interfaces.wire_models.paging import PageQuery, cut
from cuepost.interfaces.wire_models.shapes import given
from cuepost.ports.store import Transaction

LISTENERS = "/v1/listeners"
LISTENER = "/v1/listeners/{listenerId}"
_TAG = "Listeners"


async def register(
    service: Service, transaction: Transaction, call: Call[RegisterListener, Nothing]
) -> Reply:
    listener = await service.listeners.register(
        transaction, call.caller, call.body.name, given(call.body.events)
    )
    return Reply(Listener.of(listener))


async def page(service: Service, transaction: Transaction, call: Call[Nothing, PageQuery]) -> Reply:
    found = await service.listeners.page(transaction, call.caller, call.query.page())
    return Reply(ListenerList(*cut([Listener.of(each) for each in found], call.query.limit)))


async def follow(context: Context, call: Call[Any, Any]) -> Rendered:
    """Not in one transaction: it may wait for long."""
    found = await context.service.listeners.follow(
        call.caller,
        call.ids["listenerId"],
        call.query.most,
        call.query.patience,
    )
    return context.render(Reply(StreamedEvents([StreamedEvent.of(each) for each in found])))


async def acknowledge(
    service: Service, transaction: Transaction, call: Call[Acknowledge, Nothing]
) -> Reply:
    listener = await service.listeners.acknowledge(
        transaction, call.caller, call.ids["listenerId"], int(call.body.up_to)
    )
    return Reply(Listener.of(listener))


async def delete(service: Service, transaction: Transaction, call: Call[Nothing, Nothing]) -> Reply:
    await service.listeners.delete(transaction, call.caller, call.ids["listenerId"])
    return Reply()


OPERATIONS = (
    Operation(
        method="POST",
        path=LISTENERS,
        name="registerListener",
        tag=_TAG,
        summary="Register a listener, or go on with it",
        description="A new one is handed what happens from now on. One that was registered under "
        "this name before goes on where it stopped; `events` replaces what it follows.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        body=RegisterListener,
        answer=Listener,
        refusals=(ListenerLimitReached,),
        run=changing(register),
    ),
    Operation(
        method="GET",
        path=LISTENERS,
        name="listListeners",
        tag=_TAG,
        summary="List listeners",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        query=PageQuery,
        answer=ListenerList,
        run=reading(page),
    ),
    Operation(
        method="GET",
        path=f"{LISTENER}/events",
        name="followEvents",
        tag=_TAG,
        summary="Get the next events of the stream",
        description="Those that are not acknowledged, in the order of the stream; each comes at "
        "least once. With `wait` the answer comes as soon as there is an event.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        query=StreamQuery,
        answer=StreamedEvents,
        has_deadline=False,
        run=follow,
    ),
    Operation(
        method="POST",
        path=f"{LISTENER}/acknowledge",
        name="acknowledgeEvents",
        tag=_TAG,
        summary="Say that events are done",
        description="Up to a position; what was acknowledged does not come again.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        body=Acknowledge,
        answer=Listener,
        refusals=(PositionUnknown,),
        run=changing(acknowledge),
    ),
    Operation(
        method="DELETE",
        path=LISTENER,
        name="deleteListener",
        tag=_TAG,
        summary="Forget a listener",
        description="One that nobody serves for 30 days is forgotten by itself.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        status=204,
        answer=None,
        run=changing(delete),
    ),
)
