"""The `webhooks` section, generated from the event catalogue."""

from typing import Any

from cuepost.domain.event_catalog import CATALOG, EventType
from cuepost.interfaces.rest.openapi.portable import Schema
from cuepost.interfaces.rest.openapi.schemas import event_component, ref

_HEADERS: tuple[tuple[str, Schema, str], ...] = (
    (
        "webhook-id",
        {"type": "string", "format": "uuid"},
        "The id of the event, the same for every attempt. Handle each id once.",
    ),
    (
        "webhook-timestamp",
        {"type": "string", "pattern": "^[0-9]+$"},
        "Unix time of this attempt. Reject timestamps that are more than five minutes off.",
    ),
    (
        "webhook-signature",
        {"type": "string", "pattern": "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)?$"},
        (
            "`v1,` and the base64 HMAC-SHA256 of `{id}.{timestamp}.{body}` with the decoded"
            " secret as key. During a rotation there are two signatures, separated by a space;"
            " the first is of the new secret."
        ),
    ),
)


def webhooks_section() -> dict[str, Any]:
    return {entry.name: {"post": _delivery_of(entry)} for entry in CATALOG}


def _delivery_of(entry: EventType) -> Schema:
    body = {"schema": ref(event_component(entry.name)), "example": entry.sample()}
    return {
        "operationId": "on" + event_component(entry.name),
        "summary": entry.meaning,
        "description": _sent_to(entry),
        "security": [],
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "schema": schema,
                "description": description,
            }
            for name, schema, description in _HEADERS
        ],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "2XX": {
                "description": "Acknowledged. Respond within 15 seconds; process the event later."
            },
            "default": {"description": "Not acknowledged; there are three attempts in total."},
        },
    }


def _sent_to(entry: EventType) -> str:
    if not entry.subscribable:
        return "Sent to one endpoint, regardless of its subscription."
    return (
        "Sent by default."
        if entry.subscribed_by_default
        else "Sent to endpoints that subscribe to it."
    )
