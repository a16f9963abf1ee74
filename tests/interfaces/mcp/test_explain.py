"""webhooks_explain over the protocol: an endpoint that is named is the one that is explained."""

from typing import Any
from uuid import UUID

from mcp import Client

from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import Delivery, DeliveryStatus
from tests.interfaces.mcp.agent import ERAS, McpService, failed
from tests.interfaces.mcp.test_protocol import each_era


async def explained(agent: Client, webhook_id: UUID, **more: Any) -> dict[str, Any]:
    asked = {"webhook_id": str(webhook_id), **more}
    answer = await agent.call_tool("webhooks_explain", asked)
    assert not answer.is_error, answer.content
    found: dict[str, Any] = answer.structured_content
    return found


async def send_test(mcp_service: McpService, webhook_id: UUID) -> Delivery:
    harness = mcp_service.harness
    return await harness.do(harness.service.webhooks.send_test, harness.owner, webhook_id)


@each_era
async def test_a_failed_test_is_explained_and_not_an_older_export(
    mcp_service: McpService, era: str
) -> None:
    harness = mcp_service.harness
    endpoint = (await harness.endpoint()).view.endpoint
    await harness.end(await harness.complete(), DeliveryStatus.DELIVERED)
    harness.clock.advance(1)
    test = await send_test(mcp_service, endpoint.id)
    await failed(harness, test, outcome=Outcome.HTTP_ERROR, response_status=404)
    async with mcp_service.agent(era=era) as agent:
        found = await explained(agent, endpoint.id)
    assert (found["cause"], found["arrived"]) == ("wrong_path", False)
    assert (found["eventType"], found["eventId"]) == ("webhook.test", str(test.event_id))
    assert (found["projectId"], found["projectStatus"]) == (None, None)
    [finding] = found["findings"]
    assert (finding["webhookId"], finding["deliveryId"]) == (str(endpoint.id), str(test.id))


async def test_a_test_that_arrived_is_the_answer_although_a_project_is_under_way(
    mcp_service: McpService,
) -> None:
    harness = mcp_service.harness
    endpoint = (await harness.endpoint()).view.endpoint
    test = await send_test(mcp_service, endpoint.id)
    await harness.end(test, DeliveryStatus.DELIVERED)
    harness.clock.advance(1)
    await harness.project()
    async with mcp_service.agent(era=ERAS[0]) as agent:
        found = await explained(agent, endpoint.id)
    assert (found["cause"], found["arrived"]) == ("delivered", True)
    assert (found["eventId"], found["projectId"]) == (str(test.event_id), None)


async def test_a_newer_delivery_of_another_endpoint_changes_nothing(
    mcp_service: McpService,
) -> None:
    harness = mcp_service.harness
    one = (await harness.endpoint("project.failed")).view.endpoint
    other = (await harness.endpoint(url="https://hooks.example.net/")).view.endpoint
    test = await send_test(mcp_service, one.id)
    await failed(harness, test, outcome=Outcome.TIMEOUT, response_status=None)
    harness.clock.advance(1)
    export = await harness.complete_to(other.id)
    harness.clock.advance(1)
    newest = await send_test(mcp_service, other.id)
    async with mcp_service.agent() as agent:
        of_one = await explained(agent, one.id)
        of_other = await explained(agent, other.id)
        of_export = await explained(agent, other.id, type="project.completed")
    assert (of_one["cause"], of_one["eventId"]) == ("timeout", str(test.event_id))
    assert (of_other["cause"], of_other["eventId"]) == ("not_sent_yet", str(newest.event_id))
    assert (of_export["eventId"], of_export["projectId"]) == (
        str(export.event_id),
        str(export.project_id),
    )


async def test_an_endpoint_that_nothing_was_sent_to_says_so_and_why(
    mcp_service: McpService,
) -> None:
    harness = mcp_service.harness
    endpoint = (await harness.endpoint("project.ready")).view.endpoint
    async with mcp_service.agent() as agent:
        before = await explained(agent, endpoint.id)
        harness.clock.advance(1)
        [answer] = await harness.report(harness.milestone(await harness.project()))
        after = await explained(agent, endpoint.id)
    nothing = f"Nothing was sent to {endpoint.url} in the time that history is kept."
    assert (before["cause"], before["arrived"], before["eventId"]) == (
        "nothing_happened",
        False,
        None,
    )
    assert before["explanation"].startswith(nothing)
    assert (after["cause"], after["eventId"]) == ("not_subscribed", str(answer.event_id))
    assert after["explanation"].startswith(nothing)
    assert {finding["webhookId"] for finding in after["findings"]} == {str(endpoint.id)}
