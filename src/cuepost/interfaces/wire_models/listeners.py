"""Listeners and what they are handed."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from cuepost.domain.event_catalog import SUBSCRIBABLE
from cuepost.domain.instants import to_text
from cuepost.domain.listener import Listener as StoredListener
from cuepost.interfaces.wire_models.event_types import EventTypeName
from cuepost.interfaces.wire_models.paging import DEFAULT_LIMIT, LARGEST_LIMIT
from cuepost.interfaces.wire_models.shapes import LINE, Answer, Moment, Request, given
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
        description="Who registers with the name of a listener goes on where that one stopped.",
        examples=["laptop"],
    ),
]
FollowedNames = Annotated[
    list[EventName],
    Meta(max_length=50, description=f"None chosen means all: {', '.join(SUBSCRIBABLE)}."),
]


class RegisterListener(Request, frozen=True):
    name: ListenerName
    events: FollowedNames | UnsetType | None = UNSET


# To JSON 5.0 is a whole number as well.
Position = (
    Annotated[int, Meta(ge=0, le=LARGEST_POSITION)]
    | Annotated[float, Meta(ge=0, le=LARGEST_POSITION, multiple_of=1)]
)


class Acknowledge(Request, frozen=True):
    """`upTo` is the position of the last event that is done; those before it are as well."""

    up_to: Position


class StreamQuery(Request, frozen=True):
    limit: (
        Annotated[
            int, Meta(ge=1, le=LARGEST_LIMIT, description=f"{DEFAULT_LIMIT} if it is left out.")
        ]
        | UnsetType
    ) = UNSET
    wait: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=LONGEST_WAIT_SECONDS,
                description="Seconds to wait for an event where there is none; 0 if left out.",
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


class Listener(Answer, frozen=True):
    """`acknowledged` is the last position that is done; one unserved for 30 days is forgotten."""

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


class ListenerList(Answer, frozen=True):
    data: list[Listener]
    next_cursor: str | None


class StreamedEvent(Answer, frozen=True):
    position: int
    id: UUID
    type: EventTypeName
    created_at: Moment
    body: Annotated[
        str, Meta(description="What a receiver gets, letter by letter; sign and send it as it is.")
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


class StreamedEvents(Answer, frozen=True):
    """In the order of the stream; what is not acknowledged comes again."""

    data: list[StreamedEvent]
