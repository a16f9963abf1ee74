"""No tool ever shows a signing secret or a key, whatever it is asked."""

import logging
import traceback
from typing import Any
from uuid import UUID

import pytest

from cuepost.domain.signing import SigningSecret
from cuepost.interfaces.mcp.diagnosing import DiagnoseSignature
from cuepost.interfaces.mcp.table import TOOLS
from cuepost.testing import RepeatableEntropy
from tests.interfaces.mcp.agent import ERAS, HOST, McpService, arguments_of_everything, failed
from tests.interfaces.rest.test_canary import forms, secret_forms


async def secrets_of(mcp_service: McpService) -> list[str]:
    """Every signing secret that is in the store, opened."""
    return [
        SigningSecret(mcp_service.harness.box.open(row.sealed, row.webhook_id.bytes)).reveal()
        for row in (await mcp_service.stored())["signing_secrets"]
    ]


async def of_a_receiver_that_gives_its_secret_away(mcp_service: McpService) -> dict[str, Any]:
    made = await mcp_service.harness.endpoint()
    delivery = await mcp_service.harness.complete_to(made.view.endpoint.id)
    page = f"<h1>Error</h1> SECRET={made.secret.reveal()} KEY={mcp_service.owner}".encode()
    await failed(
        mcp_service.harness, delivery, response_body=page, response_headers=(("x", page.decode()),)
    )
    return {"webhook_id": str(delivery.webhook_id), "delivery_id": str(delivery.id)}


def wrong_ways(right: dict[str, Any], secret: str) -> list[dict[str, Any]]:
    return [
        {**right, "x": secret},
        {**right, "webhook_id": secret},
        {**right, "secret": secret},
        {**right, "confirm_host": secret},
    ]


@pytest.mark.parametrize("era", ERAS)
async def test_secrets_and_keys_appear_in_no_answer_and_no_log_line(
    mcp_service: McpService, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="cuepost")
    careless = await of_a_receiver_that_gives_its_secret_away(mcp_service)
    arguments = await arguments_of_everything(mcp_service)
    secrets = await secrets_of(mcp_service)
    seen: list[str] = []
    async with mcp_service.agent(era=era) as agent:
        seen.append((await agent.call_tool("deliveries_get", careless)).model_dump_json())
        for tool in sorted(TOOLS, key=lambda tool: tool.name == "webhooks_delete"):
            right = arguments.get(tool.name, {})
            for given in [right, *wrong_ways(right, secrets[0])]:
                answer = await agent.call_tool(tool.name, given)
                seen.append(answer.model_dump_json())
            secrets += await secrets_of(mcp_service)
        seen += [
            (await agent.read_resource(resource.uri)).model_dump_json()
            for resource in (await agent.list_resources()).resources
        ]
        seen.append((await agent.get_prompt("debug_webhook", {})).model_dump_json())
    seen += [record.getMessage() for record in caplog.records]
    seen += [
        "".join(traceback.format_exception(*record.exc_info))
        for record in caplog.records
        if record.exc_info
    ]
    everything = "\n".join(seen)
    canaries = [form for secret in set(secrets) for form in secret_forms(secret)]
    canaries += [*forms(mcp_service.owner), *forms(mcp_service.pipeline)]
    assert len(set(secrets)) >= 5
    assert [canary for canary in canaries if canary in everything] == []
    assert "whsec_[hidden]" in everything
    assert "operation=mcp:webhooks_create" in everything


async def test_a_new_secret_is_a_hint_and_an_address(mcp_service: McpService) -> None:
    made = await mcp_service.done("webhooks_create", url=f"https://{HOST}/new")
    webhook = made["webhook"]
    [secret] = await secrets_of(mcp_service)
    assert made["secretHint"] == webhook["secretHint"] == f"whsec_…{secret.rstrip('=')[-4:]}"
    assert made["revealUrl"].startswith("https://cuepost.example.com/reveal/")
    mcp_service.harness.clock.advance(1)
    turned = await mcp_service.done(
        "webhooks_rotate_secret", webhook_id=webhook["id"], confirm_host=HOST
    )
    assert turned["secretHint"] != made["secretHint"]
    assert turned["webhook"]["previousSecretExpiresAt"] == "2026-01-03T03:04:06.678Z"


def test_arguments_with_a_secret_hide_it_in_their_repr() -> None:
    secret = SigningSecret(RepeatableEntropy()(32)).reveal()
    given = DiagnoseSignature(webhook_id=UUID(int=0), secret=secret)
    assert secret not in repr(given)
