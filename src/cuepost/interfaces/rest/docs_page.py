"""The OpenAPI document as an HTML page without scripts."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

Json = dict[str, Any]

_REF = "#/components/schemas/"
_LIMITS = (
    ("minLength", "length from {}"),
    ("maxLength", "length up to {}"),
    ("minItems", "from {} entries"),
    ("maxItems", "up to {} entries"),
    ("minimum", "from {}"),
    ("maximum", "up to {}"),
    ("default", "default {}"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A field or a parameter."""

    name: str
    kind: Markup
    required: bool
    description: str
    place: str = ""


def render_page(document: Json) -> str:
    """Imports Jinja late, because this page is rarely requested."""
    from jinja2 import Environment, PackageLoader  # noqa: PLC0415  # see above

    environment = Environment(
        loader=PackageLoader("cuepost.interfaces.rest", "pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "prose": prose,
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
        "parameters": lambda operation: list(_parameters(operation, document)),
        "fields": lambda schema: list(_fields(schema)),
        "kind": kind_of,
        "resolved": lambda response: _resolved(response, document),
    }
    calls = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    by_tag = {
        tag["name"]: [call for call in calls if tag["name"] in call[2]["tags"]]
        for tag in document["tags"]
    }
    return environment.get_template("docs.html").render(document=document, by_tag=by_tag)


def prose(text: str) -> Markup:
    """Render paragraphs, `code` and **strong**; everything else is escaped text."""
    paragraphs = [str(escape(part)) for part in re.split(r"\n\s*\n", text.strip()) if part]
    marked = [
        re.sub(
            r"\*\*(.+?)\*\*", r"<strong>\1</strong>", re.sub("`(.+?)`", r"<code>\1</code>", part)
        )
        for part in paragraphs
    ]
    return Markup("".join(f"<p>{part}</p>" for part in marked))


def kind_of(schema: Json) -> Markup:
    """A short description of a schema, with links to named schemas."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema and "properties" not in schema:
            return Markup(" or ").join(map(kind_of, schema[several]))
    if "const" in schema:
        return Markup("<code>{}</code>").format(json.dumps(schema["const"]))
    if "enum" in schema:
        return Markup(" ").join(Markup("<code>{}</code>").format(each) for each in schema["enum"])
    if schema.get("type") == "array":
        return Markup("list of ") + kind_of(schema.get("items", {}))
    return escape(", ".join([_type_of(schema), *_limits(schema)]))


def _type_of(schema: Json) -> str:
    return str(schema.get("format") or schema.get("type") or "anything")


def _limits(schema: Json) -> Iterator[str]:
    for name, words in _LIMITS:
        if name in schema:
            yield words.format(schema[name])


def _parameters(operation: Json, document: Json) -> Iterator[Row]:
    for named in operation.get("parameters", ()):
        each = _resolved(named, document)
        description = each.get("description") or each["schema"].get("description", "")
        required = each.get("required", False)
        yield Row(each["name"], kind_of(each["schema"]), required, description, each["in"])


def _fields(schema: Json) -> Iterator[Row]:
    required = schema.get("required", ())
    for name, each in schema.get("properties", {}).items():
        yield Row(name, kind_of(each), name in required, _description(each))


def _description(schema: Json) -> str:
    inner = (_description(each) for each in schema.get("anyOf", ()))
    return str(schema.get("description") or next(filter(None, inner), ""))


def _resolved(part: Json, document: Json) -> Json:
    """Resolve a reference to a component."""
    if "$ref" not in part:
        return part
    *_, kind, name = part["$ref"].split("/")
    found: Json = document["components"][kind][name]
    return found
