"""Writes docs/reference from the code; with --check it only says whether the pages are current."""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import cast

import click
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from cuepost.adapters.system_clock import SystemClock
from cuepost.adapters.telemetry import BacklogMetrics, EngineTelemetry, TaskMetrics
from cuepost.bootstrap.inbound_guard import InboundMetrics
from cuepost.domain.event_catalog import CATALOG, EventType
from cuepost.interfaces.cli import cli
from cuepost.interfaces.mcp import prompts
from cuepost.interfaces.mcp.resources import RESOURCES, RESULTS, result_schemas
from cuepost.interfaces.mcp.schemas import outline_of, schema_of
from cuepost.interfaces.mcp.table import TOOLS
from cuepost.interfaces.mcp.tool import Tool
from cuepost.interfaces.rest.discovery import DIALECT
from cuepost.interfaces.rest.observing import RequestTelemetry
from cuepost.interfaces.rest.openapi.http_file import http_file
from cuepost.interfaces.wire_models.request_notes import OPERATION
from cuepost.ports.store import Store
from cuepost.settings import CLIENT_VARIABLES, PREFIX, VARIABLES, Setting

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
MADE_BY = "<!-- Made by scripts/reference.py; change the code instead, and run it again. -->"
HELP_WIDTH = 88

SETTINGS_PAGE = """\
{made_by}

# Settings

Settings are environment variables that begin with `{prefix}`. If such a variable is not in this
list, or its value cannot be used, a process does not start: it prints one line that says which and
why, and exits with code 2. `{prefix}TEST_…` is reserved for tests.

| variable | default | written as | meaning |
| --- | --- | --- | --- |
{rows}

## Settings of the developer tools

`cuepost verify`, `receiver check`, `trigger`, `deliveries`, `listen` and `mcp` read these; a
service ignores them.

| variable | default | written as | meaning |
| --- | --- | --- | --- |
{client_rows}

## In Kubernetes

In Kubernetes a service named `cuepost` puts variables such as `CUEPOST_PORT=tcp://…` into every
container beside it; disable that with `enableServiceLinks: false`.
"""

CLI_PAGE = """\
{made_by}

# Command line

Exit codes: 0 success, 1 failure, 2 invalid arguments or settings. Errors are one line on standard
error. Settings come from the environment: see [settings](settings.md).

{sections}
"""


MCP_PAGE = """\
{made_by}

# Tools for agents

The service speaks MCP at `/mcp` (streamable HTTP, no sessions), and `cuepost mcp` offers the same
over standard input and output. Every request has a key, an account's or an operator's, as
`Authorization: Bearer …`; a key sees the tools that its scopes allow. Results have the same fields
as the REST API. A refusal begins with its code.

| tool | scope | kind | does |
| --- | --- | --- | --- |
{tools}

Arguments with a star are required. Destructive tools do nothing without the right `confirm_host`:
the host of the endpoint's URL, or for projects that of the service. `webhooks_update` needs it to
change the URL or to disable the endpoint.

| tool | arguments |
| --- | --- |
{arguments}

Every result is JSON, as text and as `structuredContent`. These are its fields; those with a
question mark may be null. To keep the list of tools short it has no output schemas: the whole
schemas are in [mcp-results.json](mcp-results.json), which agents read as `{results}`.

| tool | returns |
| --- | --- |
{returns}

## Resources

| resource | content |
| --- | --- |
{resources}

The prompt `{prompt}` guides an agent through a diagnosis.
"""


def settings_page() -> str:
    return SETTINGS_PAGE.format(
        made_by=MADE_BY,
        prefix=PREFIX,
        rows=_rows(VARIABLES),
        client_rows=_rows(CLIENT_VARIABLES),
    )


def _rows(variables: Mapping[str, Setting]) -> str:
    return "\n".join(
        f"| `{name}` | {setting.shown_default} | {setting.kind.expected} | {setting.meaning} |"
        for name, setting in variables.items()
    )


def cli_page() -> str:
    root = cli.make_context("cuepost", [], terminal_width=HELP_WIDTH, resilient_parsing=True)
    return CLI_PAGE.format(made_by=MADE_BY, sections="\n\n".join(sections(root)))


def sections(context: click.Context) -> Iterator[str]:
    """The help of a command as a terminal shows it, then that of the commands below it."""
    yield f"## `{context.command_path}`\n\n```text\n{help_of(context)}\n```"
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.commands[name]
            yield from sections(click.Context(command, parent=context, info_name=name))


def help_of(context: click.Context) -> str:
    # The settings have their own page.
    return context.get_help().partition("\nSettings (environment variables):")[0].rstrip()


def mcp_page() -> str:
    return MCP_PAGE.format(
        made_by=MADE_BY,
        tools="\n".join(
            f"| `{tool.name}` | `{tool.scope}` | {kind_of(tool)} | {tool.description} |"
            for tool in TOOLS
        ),
        arguments="\n".join(
            f"| `{tool.name}` | {arguments_of(tool) or 'none'} |" for tool in TOOLS
        ),
        results=RESULTS,
        returns="\n".join(f"| `{tool.name}` | `{outline_of(tool.answer)}` |" for tool in TOOLS),
        resources="\n".join(f"| `{each.uri}` | {each.description} |" for each in RESOURCES),
        prompt=prompts.NAME,
    )


def kind_of(tool: Tool) -> str:
    if tool.reads:
        return "reads"
    return "destructive" if tool.destructive else "changes"


def arguments_of(tool: Tool) -> str:
    schema = schema_of(tool.arguments)
    needed = schema["required"]
    return ", ".join(f"`{name}`{'*' if name in needed else ''}" for name in schema["properties"])


def schema_page(entry: EventType) -> str:
    return json.dumps({"$schema": DIALECT, **entry.schema()}, indent=2) + "\n"


METRICS_PAGE = """\
{made_by}

# Metrics

`GET /metrics` of every process shows these, in the text format of Prometheus. `cuepost worker`
shows them at `CUEPOST_WORKER_PORT`. No label names an account, an endpoint or a host.

| metric | kind | labels | meaning |
| --- | --- | --- | --- |
{rows}

The figures of the queue are read from the store together with the metrics, at most every two
seconds. Every process shows the same, so use the maximum and not the sum. The alerts and the
dashboard in `deploy/` use these metrics, and a test compares the two.
"""


def metrics_page() -> str:
    rows = asyncio.run(_metric_rows())
    return METRICS_PAGE.format(made_by=MADE_BY, rows="\n".join(sorted(rows)))


async def _metric_rows() -> list[str]:
    """The metrics of a process that has answered one request; reading none needs no store."""
    registry = CollectorRegistry()
    TaskMetrics(registry)
    EngineTelemetry(registry)
    InboundMetrics(registry)
    BacklogMetrics(cast(Store, None), SystemClock(), registry)
    request = {"method": "GET", OPERATION: "listProjects"}
    RequestTelemetry(registry).answered(request, 200, 0.001)
    return [_metric_row(family) for family in registry.collect()]


def _metric_row(family: Metric) -> str:
    found = {label for sample in family.samples for label in sample.labels} - {"le"}
    labels = sorted(found or getattr(family, "_labelnames", ()))
    name = f"{family.name}_total" if family.type == "counter" else family.name
    shown = ", ".join(f"`{label}`" for label in labels) or "none"
    return f"| `{name}` | {family.type} | {shown} | {family.documentation} |"


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "cli.md": cli_page,
    "mcp.md": mcp_page,
    "metrics.md": metrics_page,
    "mcp-results.json": lambda: json.dumps(result_schemas(), indent=2) + "\n",
    "cuepost.http": partial(http_file, "http://127.0.0.1:8000"),
    **{f"schemas/{entry.name}.json": partial(schema_page, entry) for entry in CATALOG},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail when stale")
    only_check: bool = parser.parse_args().check
    stale = []
    for name, render in PAGES.items():
        path, page = FOLDER / name, render()
        if path.exists() and path.read_text(encoding="utf-8") == page:
            continue
        stale.append(name)
        if not only_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page, encoding="utf-8")
    for name in stale:
        print(f"docs/reference/{name} {'is stale: run scripts/reference.py' * only_check}".rstrip())
    return 1 if only_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
