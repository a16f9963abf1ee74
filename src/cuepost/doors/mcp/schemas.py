"""JSON schemas of arguments and answers, whole in themselves, with an object at the root."""

from functools import cache
from typing import Any

import msgspec

Schema = dict[str, Any]

_REF = "#/$defs/{name}"
# What is passed on byte for byte has no type of its own in the model; each is a JSON object.
_ANY_OBJECT: Schema = {"type": "object", "additionalProperties": True}


@cache
def schema_of(model: type[Any]) -> Schema:
    [root], components = msgspec.json.schema_components([model], ref_template=_REF)
    definitions: dict[str, Schema] = _portable(components)
    schema = definitions.pop(root["$ref"].rpartition("/")[2])
    if definitions:
        schema["$defs"] = definitions
    return schema


def _portable(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _portable_member(name, each) for name, each in schema.items()}
    if isinstance(schema, list):
        return [_portable(each) for each in schema]
    return schema


def _portable_member(name: str, member: Any) -> Any:
    if name == "pattern":
        # Python's `\Z` is what `$` means in a schema.
        return member.replace(r"\Z", "$")
    if name == "properties":
        return {field: _portable(kind) or dict(_ANY_OBJECT) for field, kind in member.items()}
    return _portable(member)
