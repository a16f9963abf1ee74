"""Resources for agents: event schemas, outcome explanations, verification snippets."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from types import MappingProxyType

from cuepost.domain.attempt import EXPLANATIONS, Outcome
from cuepost.domain.event_catalog import CATALOG, EventType
from cuepost.interfaces.mcp.schemas import Schema, schemas_of
from cuepost.interfaces.mcp.table import TOOLS

RESULTS = "cuepost://results"
_DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
SNIPPETS = {
    "python": ("Python, standard library only", "text/x-python"),
    "fastapi": ("FastAPI", "text/x-python"),
    "express": ("Express (Node.js)", "text/javascript"),
    "go": ("Go", "text/x-go"),
    "curl": ("curl, a signed request to your own receiver", "text/x-shellscript"),
}


@dataclass(frozen=True, slots=True)
class Readable:
    uri: str
    name: str
    title: str
    description: str
    media_type: str
    text: Callable[[], str]


def _event_type(entry: EventType) -> Readable:
    return Readable(
        uri=f"cuepost://event-types/{entry.name}",
        name=entry.name,
        title=f"The event {entry.name}",
        description=f"{entry.meaning} JSON schema of the body, with a sample.",
        media_type="application/schema+json",
        text=partial(_schema_text, entry),
    )


def _schema_text(entry: EventType) -> str:
    return json.dumps(_DIALECT | entry.schema() | {"examples": [entry.sample()]}, indent=2)


def _results() -> Readable:
    return Readable(
        uri=RESULTS,
        name="results",
        title="Results of the tools",
        description="JSON schema of the result of each tool; property names are tool names.",
        media_type="application/schema+json",
        text=_results_text,
    )


def _results_text() -> str:
    return json.dumps(result_schemas())


def result_schemas() -> Schema:
    return _DIALECT | schemas_of({tool.name: tool.answer for tool in TOOLS})


def _outcomes() -> Readable:
    return Readable(
        uri="cuepost://outcomes",
        name="outcomes",
        title="Outcomes of an attempt",
        description="All outcomes of an attempt: what each means, and how to fix it.",
        media_type="text/markdown",
        text=_outcomes_text,
    )


def _outcomes_text() -> str:
    parts = ["# Outcomes of an attempt"]
    for outcome in Outcome:
        explained = EXPLANATIONS[outcome]
        parts.append(f"## {outcome}\n\n{explained.sentence} {explained.fix}")
    return "\n\n".join(parts) + "\n"


def _snippet(name: str) -> Readable:
    title, media_type = SNIPPETS[name]
    return Readable(
        uri=f"cuepost://verification/{name}",
        name=f"verification-{name}",
        title=f"Verify a delivery: {title}",
        description="Checks the signature of a delivery over the raw body, in constant time.",
        media_type=media_type,
        text=partial(_snippet_text, name),
    )


def _snippet_text(name: str) -> str:
    return files(__package__).joinpath("snippets", f"{name}.txt").read_text("utf-8")


RESOURCES: tuple[Readable, ...] = (
    *map(_event_type, CATALOG),
    _outcomes(),
    _results(),
    *map(_snippet, SNIPPETS),
)
BY_URI: Mapping[str, Readable] = MappingProxyType({each.uri: each for each in RESOURCES})
