"""Calls for listeners, which follow the account's events: `cuepost listen` and similar programs."""

from typing import Any

from cuepost.application.service import Service
from cuepost.domain.access import Scope
from cuepost.domain.errors import ListenerLimitReached, PositionUnknown
from cuepost.interfaces.rest.answers import Rendered, Reply
from cuepost.interfaces.rest.operation import Call, Context, NoInput, Operation
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
    service: Service, transaction: Transaction, call: Call[RegisterListener, NoInput]
) -> Reply:
    listener = await service.listeners.register(
        transaction, call.caller, call.body.name, given(call.body.events)
    )
    return Reply(Listener.of(listener))


async def page(service: Service, transaction: Transaction, call: Call[NoInput, PageQuery]) -> Reply:
    found = await service.listeners.page(transaction, call.caller, call.query.page())
    return Reply(ListenerList(*cut([Listener.of(each) for each in found], call.query.limit)))


async def follow(context: Context, call: Call[Any, Any]) -> Rendered:
    """Runs outside a transaction, because it may wait for a long time."""
    found = await context.service.listeners.follow(
        call.caller,
        call.ids["listenerId"],
        call.query.most,
        call.query.patience,
    )
    return context.render(Reply(StreamedEvents([StreamedEvent.of(each) for each in found])))


async def acknowledge(
    service: Service, transaction: Transaction, call: Call[Acknowledge, NoInput]
) -> Reply:
    listener = await service.listeners.acknowledge(
        transaction, call.caller, call.ids["listenerId"], int(call.body.up_to)
    )
    return Reply(Listener.of(listener))


async def delete(service: Service, transaction: Transaction, call: Call[NoInput, NoInput]) -> Reply:
    await service.listeners.delete(transaction, call.caller, call.ids["listenerId"])
    return Reply()


OPERATIONS = (
    Operation(
        method="POST",
        path=LISTENERS,
        name="registerListener",
        tag=_TAG,
        summary="Register a listener, or resume it",
        description="A new listener gets events that happen from now on. A listener that was "
        "registered with this name before resumes where it stopped; `events` replaces its types.",
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
        description="Returns events that are not acknowledged, in the order of the stream; each is "
        "returned at least once. With `wait` the call waits until there is an event.",
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
        summary="Acknowledge events",
        description="Acknowledges all events up to a position; they are not returned again.",
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
        summary="Delete a listener",
        description="A listener that is not used for 30 days is deleted automatically.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        status=204,
        answer=None,
        run=changing(delete),
    ),
)
