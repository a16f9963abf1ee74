"""The `webhooks` section: what receivers get, from the event catalogue."""

from typing import Any

from cuepost.domain.event_catalog import CATALOG, EventType
from cuepost.interfaces.rest.openapi.portable import Schema
from cuepost.interfaces.rest.openapi.schemas import event_component, ref

_HEADERS: tuple[tuple[str, Schema, str], ...] = (
    (
        "webhook-id",
        {"type": "string", "format": "uuid"},
        "The event's id, the same at every attempt. Handle each id once.",
    ),
    (
        "webhook-timestamp",
        {"type": "string", "pattern": "^[0-9]+$"},
        "Unix seconds of this attempt. Refuse what is older than five minutes.",
    ),
    (
        "webhook-signature",
        {"type": "string", "pattern": "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)?$"},
        (
            "`v1,` and the base64 HMAC-SHA256 of `{id}.{timestamp}.{body}` under the secret's"
            " bytes. While a rotation overlaps there are two, the new secret's first, one space"
            " between."
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
            "2XX": {"description": "Acknowledged. Answer within 15 seconds, and work afterwards."},
            "default": {"description": "Not acknowledged; it is sent again, three times in all."},
        },
    }


def _sent_to(entry: EventType) -> str:
    if not entry.subscribable:
        return "Sent to one endpoint, whatever it is subscribed to."
    return "Sent by default." if entry.subscribed_by_default else "Sent to endpoints that chose it."
