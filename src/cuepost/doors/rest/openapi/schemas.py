"""Schemas of the wire models, made as precise as the use cases are."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from cuepost.domain.delivery import FINAL
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.event_catalog import CATALOG
from cuepost.domain.host_name import SPECIAL_USE_SUFFIXES
from cuepost.domain.project import STAGE_OF, ProjectStatus, Stage
from cuepost.domain.receiver_url import LONGEST_URL

Schema = dict[str, Any]

REF = "#/components/schemas/"
PROBLEM = "Problem"
EVENT_BODY = "EventBody"

_PUBLIC_HOST = (
    r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.){1,8}"
    rf"(?!({'|'.join(sorted(SPECIAL_USE_SUFFIXES))})([:/]|$))[a-z]{{2,24}}"
)
# Visible ASCII without `#` and the backslash.
_TARGET = r"(/[!-\"$-\[\]-~]*)?"


def ref(name: str) -> Schema:
    return {"$ref": REF + name}


def component_name(model: type[Any]) -> str:
    return model.__name__


def schemas_of(models: Iterable[type[Any]], policy: EgressPolicy) -> dict[str, Schema]:
    _, components = msgspec.json.schema_components(models, ref_template=REF + "{name}")
    schemas: dict[str, Schema] = _as_ecma(components)
    schemas |= event_schemas()
    schemas |= {PROBLEM: _problem(), "FieldError": _field_error()}
    _refine(schemas, policy)
    return dict(sorted(schemas.items()))


def event_component(name: str) -> str:
    return "".join(part.capitalize() for part in name.split(".")) + "Event"


def event_schemas() -> dict[str, Schema]:
    each = {event_component(entry.name): entry.schema() for entry in CATALOG}
    body = {
        "description": "What a receiver gets, byte for byte.",
        "oneOf": [ref(name) for name in each],
    }
    return {**each, EVENT_BODY: body}


def _refine(schemas: dict[str, Schema], policy: EgressPolicy) -> None:
    for model in ("CreateWebhook", "UpdateWebhook"):
        schemas[model]["properties"]["url"] |= _receiver_url(policy)
    ended, _ = schemas["StartBulkRetry"]["properties"]["statuses"]["anyOf"]
    ended["items"] = {"enum": [status.value for status in FINAL]}
    schemas["DeliveryDetail"]["properties"]["event"] = ref(EVENT_BODY)
    schemas["Event"]["properties"]["body"] = ref(EVENT_BODY)
    artifact = schemas["ReportedArtifact"]["properties"]
    artifact["sizeBytes"] = artifact["sizeBytes"]["anyOf"][0]
    schemas["MilestoneReport"]["oneOf"] = [_milestone_of(status) for status in ProjectStatus]


def _receiver_url(policy: EgressPolicy) -> Schema:
    """Under the default policy as narrow as it is judged; addresses and IDN names pass as well."""
    if replace(policy, inbox_prefix=None) == EgressPolicy():
        pattern = rf"^https://{_PUBLIC_HOST}(:443)?{_TARGET}$"
    else:
        pattern = r"^https?://[!-\"$-?A-\[\]-~]+$"
    return {"pattern": pattern, "maxLength": LONGEST_URL}


def _milestone_of(status: ProjectStatus) -> Schema:
    """What may stand beside a status."""
    fixed = STAGE_OF.get(status)
    stages: list[str | None] = [fixed.value] if fixed else [stage.value for stage in Stage]
    allowed: Schema = {"status": {"const": status.value}, "stage": {"enum": [*stages, None]}}
    if status is not ProjectStatus.FAILED:
        allowed["error"] = {"type": "null"}
    if status is not ProjectStatus.COMPLETED:
        allowed["artifacts"] = {"type": ["array", "null"], "maxItems": 0}
    return {"properties": allowed}


def _problem() -> Schema:
    return {
        "title": PROBLEM,
        "description": "RFC 9457. `code` is stable; some codes come with further members.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "format": "uri"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "code": {"type": "string"},
            "errors": {"type": "array", "items": ref("FieldError"), "minItems": 1},
        },
        "required": ["type", "title", "status", "detail", "code"],
    }


def _field_error() -> Schema:
    return {
        "title": "FieldError",
        "type": "object",
        "properties": {
            "field": {"type": "string", "examples": ["milestones[3].status"]},
            "code": {"type": "string", "examples": ["unknown_field"]},
            "message": {"type": "string"},
        },
        "required": ["field", "code", "message"],
    }


def _as_ecma(schema: Any) -> Any:
    r"""Python's `\Z` is what `$` means in a schema."""
    if isinstance(schema, dict):
        return {
            name: each.replace(r"\Z", "$") if name == "pattern" else _as_ecma(each)
            for name, each in schema.items()
        }
    if isinstance(schema, list):
        return [_as_ecma(each) for each in schema]
    return schema
