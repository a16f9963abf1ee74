"""The catalogue of event types."""

from typing import Annotated, Any

from msgspec import Meta

from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.event_catalog import BY_NAME
from cuepost.domain.event_catalog import EventType as CatalogEntry
from cuepost.interfaces.wire_models.shapes import ResponseModel

EventTypeName = Annotated[
    str, Meta(title="EventTypeName", extra_json_schema={"enum": list(BY_NAME)})
]


class EventType(ResponseModel, frozen=True):
    """`default`: sent to endpoints that choose no events. `schema` describes the whole body."""

    name: EventTypeName
    meaning: str
    default: bool
    subscribable: bool
    schema: dict[str, Any]
    sample: dict[str, Any]

    @classmethod
    def of(cls, entry: CatalogEntry) -> "EventType":
        return cls(
            name=entry.name,
            meaning=entry.meaning,
            default=entry.subscribed_by_default,
            subscribable=entry.subscribable,
            schema=entry.schema(),
            sample=entry.sample(),
        )


class EventTypeList(ResponseModel, frozen=True):
    """The whole catalogue in one page."""

    data: list[EventType]
    next_cursor: None


def known_type(name: str | None) -> str | None:
    if name is not None and name not in BY_NAME:
        raise Invalid(
            FieldError("type", "unknown_event_type", f"Choose from {', '.join(BY_NAME)}.")
        )
    return name
