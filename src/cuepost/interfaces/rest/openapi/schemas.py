"""Schemas of the wire models, narrowed to what the use cases accept."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from cuepost.domain.delivery import FINAL
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.errors import FieldError
from cuepost.domain.event_catalog import CATALOG
from cuepost.domain.host_name import SPECIAL_USE_SUFFIXES
from cuepost.domain.receiver_url import LONGEST_URL
from cuepost.interfaces.rest.openapi.portable import Schema, portable

REF = "#/components/schemas/"
PROBLEM = "Problem"
EVENT_BODY = "EventBody"

_PUBLIC_HOST = (
    r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.){1,8}"
    rf"(?!({'|'.join(sorted(SPECIAL_USE_SUFFIXES))})([:/]|$))[a-z]{{2,24}}"
)
# Visible ASCII without `#` and the backslash.
_TARGET = r'(/[!-"$-\[\]-~]*)?'


def ref(name: str) -> Schema:
    return {"$ref": REF + name}


def component_name(model: type[Any]) -> str:
    return model.__name__


def schemas_of(models: Iterable[type[Any]], policy: EgressPolicy) -> dict[str, Schema]:
    _, components = msgspec.json.schema_components(
        [*models, FieldError], ref_template=REF + "{name}"
    )
    schemas: dict[str, Schema] = {**components, **event_schemas(), PROBLEM: _problem()}
    _refine(schemas, policy)
    return dict(sorted(portable(schemas, REF).items()))


def event_component(name: str) -> str:
    return "".join(part.capitalize() for part in name.split(".")) + "Event"


def event_schemas() -> dict[str, Schema]:
    names = {entry.name: event_component(entry.name) for entry in CATALOG}
    body = {
        "description": "The exact body that receivers get.",
        "oneOf": [ref(name) for name in names.values()],
        "discriminator": {
            "propertyName": "type",
            "mapping": {kind: REF + name for kind, name in names.items()},
        },
    }
    each = {names[entry.name]: {**entry.schema(), "title": names[entry.name]} for entry in CATALOG}
    return {**each, EVENT_BODY: body}


def _refine(schemas: dict[str, Schema], policy: EgressPolicy) -> None:
    for model in ("CreateWebhook", "UpdateWebhook"):
        schemas[model]["properties"]["url"] |= _receiver_url(policy)
    ended, _ = schemas["StartBulkRetry"]["properties"]["statuses"]["anyOf"]
    ended["items"] = {"title": "FinalDeliveryStatus", "enum": [status.value for status in FINAL]}
    schemas["DeliveryDetail"]["properties"]["event"] = ref(EVENT_BODY)
    schemas["Event"]["properties"]["body"] = ref(EVENT_BODY)


def _receiver_url(policy: EgressPolicy) -> Schema:
    """A pattern of public URLs with the default policy; IDN hosts and IPs are accepted as well."""
    if replace(policy, inbox_prefix=None) == EgressPolicy():
        pattern = rf"^https://{_PUBLIC_HOST}(:443)?{_TARGET}$"
    else:
        pattern = r'^https?://[!-"$-?A-\[\]-~]+$'
    return {"pattern": pattern, "maxLength": LONGEST_URL}


def _problem() -> Schema:
    return {
        "title": PROBLEM,
        "description": "RFC 9457. `code` is stable; some codes have additional members.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "format": "uri"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "code": {"type": "string"},
            "errors": {"type": "array", "items": ref("FieldError"), "minItems": 1},
            "requestId": {"type": "string", "description": "As in the header `X-Request-Id`."},
        },
        "required": ["type", "title", "status", "detail", "code", "requestId"],
    }
