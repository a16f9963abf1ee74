"""Agents and the service as real processes: over HTTP and over stdio, in both eras."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.e2e.first_steps import ApiUser, keys_in
from tests.interfaces.mcp.agent import ERAS
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import (
    PATIENCE_SECONDS,
    Ended,
    ServiceProcess,
    command,
    environment,
    free_port,
    run,
)


class Silent(BaseHTTPRequestHandler):
    """A web server that knows no method, and does not talk about it."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[RecordingReceiver]:
    with RecordingReceiver() as receiver:
        yield receiver


@pytest.fixture
def settings(tmp_path: Path, receiver: RecordingReceiver) -> dict[str, str]:
    return {
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": str(free_port()),
        "RECEIVER_HTTP": "true",
        "RECEIVER_NETWORKS": "127.0.0.0/8",
        "RECEIVER_PORTS": f"443,{receiver.port}",
    }


def api_user_of(service: ServiceProcess, settings: dict[str, str]) -> ApiUser:
    keys = keys_in(service.greeting)
    assert keys is not None
    return ApiUser(f"http://127.0.0.1:{settings['PORT']}", keys)


@asynccontextmanager
async def over_http(
    api_user: ApiUser, era: str, *answered: Callable[[httpx2.Response], Awaitable[None]]
) -> AsyncIterator[Client]:
    headers, hooks = {"Authorization": f"Bearer {api_user.keys.api}"}, {"response": [*answered]}
    async with httpx2.AsyncClient(
        headers=headers, event_hooks=hooks, trust_env=False, timeout=20
    ) as http:
        transport = streamable_http_client(f"{api_user.base_url}/mcp", http_client=http)
        async with Client(transport, mode=era) as agent:
            yield agent


@asynccontextmanager
async def over_stdio(api_user: ApiUser, era: str) -> AsyncIterator[Client]:
    program, *arguments = command("mcp")
    environ = environment({"URL": api_user.base_url, "API_KEY": api_user.keys.api})
    started = StdioServerParameters(command=program, args=arguments, env=environ)
    async with Client(started, mode=era) as agent:
        yield agent


async def arrived(agent: Client) -> Any:
    """What is said of the newest export, once it is not on its way any more."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            reported = (await agent.call_tool("webhooks_explain", {})).structured_content
            if reported["cause"] != "not_sent_yet":
                return reported


async def walk_through(agent: Client, api_user: ApiUser, receiver: RecordingReceiver) -> None:
    """A project made by an agent; the pipeline finishes it; its endpoint is told."""
    made = await agent.call_tool("webhooks_create", {"url": receiver.url("/cue")})
    assert not made.is_error, made.content
    project = (await agent.call_tool("projects_create", {"name": "Trailer"})).structured_content
    assert project["origin"] == "mcp"
    results = api_user.report(project["id"], "processing", "exporting", "completed")
    assert results[-1]["notified"]
    reported = await arrived(agent)
    assert (reported["arrived"], reported["projectId"]) == (True, project["id"])
    assert reported["eventId"] in [each.event_id for each in receiver.seen()]
    result = await agent.call_tool("projects_get_result", {"project_id": project["id"]})
    assert result.structured_content["status"] == "completed"
    webhook_id = made.structured_content["webhook"]["id"]
    gone = await agent.call_tool(
        "webhooks_delete", {"webhook_id": webhook_id, "confirm_host": "127.0.0.1"}
    )
    assert not gone.is_error, gone.content


async def test_an_agent_walks_a_project_through_in_both_eras_and_both_ways(
    settings: dict[str, str], receiver: RecordingReceiver
) -> None:
    with ServiceProcess(settings) as service:
        api_user = api_user_of(service, settings)
        for reached in (over_http, over_stdio):
            for era in ERAS:
                async with asyncio.timeout(PATIENCE_SECONDS), reached(api_user, era) as agent:
                    await walk_through(agent, api_user, receiver)
        # Nothing was logged, and nothing but the service's own logging was set up.
        assert service.stop() == Ended(0, "")


@pytest.mark.parametrize("era", ERAS)
async def test_the_list_of_tools_takes_less_than_25_kilobytes_on_the_wire(
    settings: dict[str, str], era: str
) -> None:
    sizes = []

    async def measure(answer: httpx2.Response) -> None:
        if json.loads(answer.request.content)["method"] == "tools/list":
            sizes.append(len(await answer.aread()))

    with ServiceProcess(settings) as service:
        api_user = api_user_of(service, settings)
        async with asyncio.timeout(PATIENCE_SECONDS), over_http(api_user, era, measure) as agent:
            assert (await agent.list_tools()).tools
    [size] = sizes
    assert 10_000 < size < 25_000


async def test_the_go_between_outlives_a_restart_of_the_service(settings: dict[str, str]) -> None:
    with ServiceProcess(settings) as first:
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            over_stdio(api_user_of(first, settings), ERAS[0]) as agent,
        ):
            assert not (await agent.call_tool("projects_list", {})).is_error
            first.stop()
            with pytest.raises(MCPError, match="The cuepost service cannot be reached now"):
                await agent.call_tool("projects_list", {})
            with ServiceProcess(settings):
                assert not (await agent.call_tool("projects_list", {})).is_error


@pytest.mark.parametrize(
    ("client", "code", "said"),
    [
        ({}, 2, "CUEPOST_API_KEY is missing; set it to an API key of the account."),
        (
            {"API_KEY": "cpk_x", "URL": "cue.example"},
            2,
            "CUEPOST_URL='cue.example': expected an address such as https://cuepost.example.com.",
        ),
        (
            {"API_KEY": "schlüssel"},
            2,
            "CUEPOST_API_KEY: expected an API key, which begins with cpk_.",
        ),
        (
            {"API_KEY": "cpk_x", "URL": "http://127.0.0.1:1"},
            1,
            "No response from http://127.0.0.1:1/mcp; check that the service is running.",
        ),
    ],
)
def test_what_the_go_between_lacks_is_said_in_a_line(
    client: dict[str, str], code: int, said: str
) -> None:
    ended = run(client, "mcp")
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", f"Error: {said}\n")


def test_a_key_that_is_not_good_for_it_is_said_in_a_line(settings: dict[str, str]) -> None:
    with ServiceProcess(settings) as service:
        api_user = api_user_of(service, settings)
        address = f"{api_user.base_url}/mcp"
        for key, said in (
            ("cpk_wrong", f"The service at {address} rejected the API key in CUEPOST_API_KEY."),
            (
                api_user.keys.service,
                (
                    f"{address}: This key has no scope that any tool needs; "
                    "use an API key of an account."
                ),
            ),
        ):
            ended = run({"URL": api_user.base_url, "API_KEY": key}, "mcp")
            assert (ended.returncode, ended.stderr) == (1, f"Error: {said}\n")


@pytest.mark.parametrize("half", ["serve", "api"])
def test_host_key_and_origin_are_judged_over_http(settings: dict[str, str], half: str) -> None:
    made = json.loads(run(settings, "setup", "--json").stdout)
    address = f"http://127.0.0.1:{settings['PORT']}/mcp"
    key = {"Authorization": f"Bearer {made['apiKey']}"}
    pipeline = {"Authorization": f"Bearer {made['serviceKey']}"}
    with ServiceProcess(settings, half):
        statuses = [
            httpx2.post(
                address, json={}, headers=headers, trust_env=False, timeout=PATIENCE_SECONDS
            ).status_code
            for headers in (
                {},
                pipeline,
                key | {"Host": "evil.example"},
                key | {"Origin": "https://evil.example"},
                key,
            )
        ]
    # The last one got through to the protocol, which finds no request in it.
    assert statuses == [401, 403, 421, 403, 400]


def test_what_is_not_cuepost_is_said_in_a_line() -> None:
    with HTTPServer(("127.0.0.1", 0), Silent) as other:
        answering = threading.Thread(target=other.handle_request)
        answering.start()
        address = f"http://127.0.0.1:{other.server_port}"
        ended = run({"URL": address, "API_KEY": "cpk_x"}, "mcp")
        answering.join(PATIENCE_SECONDS)
    said = f"Error: The server at {address}/mcp is not cuepost (status 501).\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", said)


LOADED = """
import json, sys
{work}
print(json.dumps(sorted(name for name in ("mcp", "pydantic", "httpx2") if name in sys.modules)))
"""


@pytest.mark.parametrize(
    "work",
    [
        "from cuepost.interfaces.cli import cli",
        "import cuepost.bootstrap.server",
        "import cuepost.bootstrap.runtime",
        "import cuepost.interfaces.mcp.app",
    ],
)
def test_what_the_protocol_needs_is_not_loaded_before_someone_speaks_it(work: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", LOADED.format(work=work)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert json.loads(shown.stdout) == []
