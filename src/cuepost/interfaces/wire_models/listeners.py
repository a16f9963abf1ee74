"""Listeners and the events that they get."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from cuepost.domain.event_catalog import SUBSCRIBABLE
from cuepost.domain.instants import to_text
from cuepost.domain.listener import Listener as StoredListener
from cuepost.interfaces.wire_models.event_types import EventTypeName
from cuepost.interfaces.wire_models.paging import DEFAULT_LIMIT, LARGEST_LIMIT
from cuepost.interfaces.wire_models.shapes import LINE, Moment, Request, ResponseModel, given
from cuepost.interfaces.wire_models.webhooks import EventName
from cuepost.ports.listeners import Streamed

LONGEST_WAIT_SECONDS = 30
LARGEST_POSITION = 2**53 - 1

ListenerName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=LINE,
        description="Registering an existing name resumes that listener.",
        examples=["laptop"],
    ),
]
FollowedNames = Annotated[
    list[EventName],
    Meta(max_length=50, description=f"Default: all: {', '.join(SUBSCRIBABLE)}."),
]


class RegisterListener(Request, frozen=True):
    name: ListenerName
    events: FollowedNames | UnsetType | None = UNSET


# In JSON, 5.0 is a whole number as well.
Position = (
    Annotated[int, Meta(ge=0, le=LARGEST_POSITION)]
    | Annotated[float, Meta(ge=0, le=LARGEST_POSITION, multiple_of=1)]
)


class Acknowledge(Request, frozen=True):
    """`upTo` is the position of the last processed event; it includes all earlier events."""

    up_to: Position


class StreamQuery(Request, frozen=True):
    limit: (
        Annotated[int, Meta(ge=1, le=LARGEST_LIMIT, description=f"Default: {DEFAULT_LIMIT}.")]
        | UnsetType
    ) = UNSET
    wait: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=LONGEST_WAIT_SECONDS,
                description="Seconds to wait if there is no event. Default: 0.",
            ),
        ]
        | UnsetType
    ) = UNSET

    @property
    def most(self) -> int:
        return given(self.limit) or DEFAULT_LIMIT

    @property
    def patience(self) -> timedelta:
        return timedelta(seconds=given(self.wait) or 0)


class Listener(ResponseModel, frozen=True):
    """`acknowledged` is the last acknowledged position; deleted after 30 days without use."""

    id: UUID
    name: str
    events: list[str]
    acknowledged: int
    created_at: Moment
    served_at: Moment

    @classmethod
    def of(cls, listener: StoredListener) -> "Listener":
        return cls(
            id=listener.id,
            name=listener.name,
            events=list(listener.events),
            acknowledged=listener.acknowledged,
            created_at=to_text(listener.created_at),
            served_at=to_text(listener.served_at),
        )


class ListenerList(ResponseModel, frozen=True):
    data: list[Listener]
    next_cursor: str | None


class StreamedEvent(ResponseModel, frozen=True):
    position: int
    id: UUID
    type: EventTypeName
    created_at: Moment
    body: Annotated[
        str, Meta(description="The exact body for the receiver; sign and send it unchanged.")
    ]

    @classmethod
    def of(cls, streamed: Streamed) -> "StreamedEvent":
        event = streamed.event
        return cls(
            position=streamed.position,
            id=event.id,
            type=event.type,
            created_at=to_text(event.created_at),
            body=event.body.decode(),
        )


class StreamedEvents(ResponseModel, frozen=True):
    """In the order of the stream; events that are not acknowledged are returned again."""

    data: list[StreamedEvent]
