"""Self-contained JSON schemas of arguments and results, with an object at the root.

The list of tools costs an agent tokens in each conversation. The list therefore has schemas of
arguments without redundant parts, and results only as an outline of their fields; the full schemas
are a resource.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

Schema = dict[str, Any]

_REF = "#/$defs/{name}"
_LEFT_OUT = ("title", "examples", "pattern")
_NULL: Schema = {"type": "null"}
# Fields of type Raw have an empty schema; each of them contains a JSON object.
_ANY_OBJECT: Schema = {"type": "object", "additionalProperties": True}


@cache
def schema_of(model: type[msgspec.Struct]) -> Schema:
    """The full schema, with titles, defaults and definitions."""
    [root], definitions = _components([model])
    schema: Schema = definitions.pop(_name_in(root))
    return {**schema, "$defs": definitions} if definitions else schema


def schemas_of(models: Mapping[str, type[msgspec.Struct]]) -> Schema:
    """One schema with a property for each model; the models share definitions."""
    roots, definitions = _components(models.values())
    return {
        "type": "object",
        "properties": dict(zip(models, roots, strict=True)),
        "$defs": definitions,
    }


@cache
def arguments_of(model: type[msgspec.Struct]) -> Schema:
    """The short schema of arguments in the list of tools."""
    schema = schema_of(model)
    properties = {name: _brief(kind, schema) for name, kind in schema["properties"].items()}
    brief = {"type": "object", "properties": properties, "additionalProperties": False}
    return brief | {name: schema[name] for name in ("description", "required") if schema.get(name)}


def outline_of(model: type[msgspec.Struct]) -> str:
    """The names of the fields of a result, as in `{id,links:[{url,expiresAt?}]}`."""
    schema = schema_of(model)
    return _outline(schema, schema)


def _components(models: Iterable[type[msgspec.Struct]]) -> tuple[list[Schema], dict[str, Schema]]:
    roots, components = msgspec.json.schema_components(models, ref_template=_REF)
    return list(roots), _portable(components)


def _name_in(reference: Schema) -> str:
    name: str = reference["$ref"].rpartition("/")[2]
    return name


def _portable(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _portable_member(name, each) for name, each in schema.items()}
    if isinstance(schema, list):
        return [_portable(each) for each in schema]
    return schema


def _portable_member(name: str, member: Any) -> Any:
    if name == "pattern":
        # `$` in ECMA-262 has the meaning of Python's `\Z`.
        return member.replace(r"\Z", "$")
    if name == "properties":
        return {field: _portable(kind) or dict(_ANY_OBJECT) for field, kind in member.items()}
    return _portable(member)


def _resolved(schema: Schema, root: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    definition: Schema = root["$defs"][_name_in(schema)]
    return definition | {name: each for name, each in schema.items() if name != "$ref"}


def _brief(schema: Schema, root: Schema) -> Schema:
    """Remove titles, examples and patterns, and null where it means the same as omitting the
    argument."""
    kind = _resolved(schema, root)
    if kind.get("default", ...) is None and _NULL in kind.get("anyOf", ()):
        [kind] = [each for each in kind["anyOf"] if each != _NULL]
        kind = _resolved(kind, root)
    brief = {name: each for name, each in kind.items() if name not in _LEFT_OUT}
    if "items" in brief:
        brief["items"] = _brief(brief["items"], root)
    if "anyOf" in brief:
        brief["anyOf"] = [_brief(each, root) for each in brief["anyOf"]]
    return brief


def _outline(schema: Schema, root: Schema) -> str:
    """Empty for a scalar value."""
    kind = _resolved(schema, root)
    choices = [each for each in kind.get("anyOf", ()) if each != _NULL]
    if choices:
        return _outline(choices[0], root)
    if "items" in kind:
        inner = _outline(kind["items"], root)
        return f"[{inner}]" if inner else ""
    if "properties" not in kind:
        return ""
    fields = [_field(name, each, root) for name, each in kind["properties"].items()]
    return "{" + ",".join(fields) + "}"


def _field(name: str, schema: Schema, root: Schema) -> str:
    mark = "?" if _NULL in schema.get("anyOf", ()) else ""
    inner = _outline(schema, root)
    return f"{name}{mark}:{inner}" if inner else f"{name}{mark}"
