"""Rewrites schemas into forms that client generators understand.

Generators drop a call whose schemas they cannot read. Therefore patterns are ECMA-262, whole
numbers are integers, constants have a type, and every enum is a component with its own name.
"""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]


def portable(components: Mapping[str, Schema], ref_prefix: str) -> dict[str, Schema]:
    """An enum inside another schema needs a title, which becomes the name of its component."""
    enums: dict[str, Schema] = {}

    def rewritten(node: Any) -> Any:
        if isinstance(node, list):
            return [rewritten(each) for each in node]
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("enum"), list) and "title" in node:
            enums.setdefault(node["title"], _enum(node))
            return {"$ref": ref_prefix + node["title"]}
        made = {name: rewritten(each) for name, each in node.items()}
        if isinstance(made.get("pattern"), str):
            made["pattern"] = _as_ecma(made["pattern"])
        if isinstance(made.get("const"), str):
            made["type"] = "string"
        return _without_whole_floats(made)

    named = {
        name: _enum(schema) if "enum" in schema else rewritten(schema)
        for name, schema in components.items()
    }
    return enums | named


def _enum(schema: Schema) -> Schema:
    kept: Schema = {name: schema[name] for name in ("title", "description") if name in schema}
    return {**kept, "type": "string", "enum": schema["enum"]}


def _as_ecma(pattern: str) -> str:
    r"""Replace Python's `\Z` by `$`, which has the same meaning in ECMA-262."""
    return pattern.replace(r"\Z", "$")


def _without_whole_floats(schema: Schema) -> Schema:
    """Drop the float variant of whole numbers: JSON Schema treats 5.0 as an integer."""
    choices = schema.get("anyOf", [])
    kept = [each for each in choices if each.get("multipleOf") != 1]
    if len(kept) == len(choices):
        return schema
    rest = {name: each for name, each in schema.items() if name != "anyOf"}
    return rest | (kept[0] if len(kept) == 1 else {"anyOf": kept})
