"""What a delivery says of itself over REST, once the engine has sent it."""

from typing import Any
from uuid import UUID

from cuepost.application.manage_webhooks import EndpointChange
from cuepost.domain.delivery import Delivery
from tests.interfaces.rest.client import Api, opened
from tests.support.engine_harness import HOUR, EngineHarness, RunScenarios

URL = "https://hooks.example.com/cue"
NEW_URL = "https://elsewhere.example.com/cue"


async def shown(api: Api, delivery: Delivery) -> dict[str, Any]:
    path = f"/v1/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"
    found: dict[str, Any] = await api.done("GET", path)
    return found


async def retry(api: Api, delivery: Delivery) -> None:
    path = f"/v1/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}/retry"
    await api.done("POST", path)


async def count(api: Api, delivery: Delivery, **wanted: Any) -> int:
    """How many a bulk retry would send."""
    body = {"since": "2026-01-01T00:00:00Z", "dryRun": True} | wanted
    job = await api.done("POST", f"/v1/webhooks/{delivery.webhook_id}/retries", body)
    return int(job["count"])


def test_manual_stands_on_the_first_attempt_of_a_retry_alone(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        engine.transport.will(URL, *[500] * 6)
        api = await opened(engine.harness)
        async with engine.delivering():
            delivery = await engine.harness.complete()
            await engine.later(HOUR)
            await retry(api, delivery)
            await engine.later(HOUR)
        attempts = (await shown(api, delivery))["attempts"]
        assert [(each["budget"], each["trigger"]) for each in attempts] == [
            *[(1, "automatic")] * 3,
            (2, "manual"),
            *[(2, "automatic")] * 2,
        ]

    run_scenarios(scenario)


def test_attempts_of_a_test_say_so_until_someone_retries_it(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        webhook_id = (await engine.harness.endpoint()).view.endpoint.id
        engine.transport.will(URL, *[500] * 4)
        api = await opened(engine.harness)
        async with engine.delivering():
            await api.done("POST", f"/v1/webhooks/{webhook_id}/test")
            await engine.later(HOUR)
            [delivery] = await engine.harness.deliveries()
            await retry(api, delivery)
            await engine.later(HOUR)
        attempts = (await shown(api, delivery))["attempts"]
        assert [each["trigger"] for each in attempts] == [*["test"] * 3, "manual", "automatic"]

    run_scenarios(scenario)


def test_each_attempt_says_which_url_it_went_to(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        webhook_id = (await engine.harness.endpoint()).view.endpoint.id
        engine.transport.will(URL, 500)
        api = await opened(engine.harness)
        async with engine.delivering():
            delivery = await engine.harness.complete()
            await engine.later()
            moved = EndpointChange(url=NEW_URL)
            harness = engine.harness
            await harness.do(harness.service.webhooks.change, harness.owner, webhook_id, moved)
            await engine.later(HOUR)
        attempts = (await shown(api, delivery))["attempts"]
        assert [each["url"] for each in attempts] == [URL, NEW_URL]

    run_scenarios(scenario)


def test_the_first_acknowledgement_stays_and_failed_leaves_it_out_unless_asked(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        engine.transport.will(URL, 200, 200, 500, 500, 500)
        api = await opened(engine.harness)
        async with engine.delivering():
            delivery = await engine.harness.complete()
            await engine.later(HOUR)
            first = await shown(api, delivery)
            for _ in range(2):
                await retry(api, delivery)
                await engine.later(HOUR)
        last = await shown(api, delivery)
        assert (first["status"], first["deliveredAt"]) == ("delivered", first["finishedAt"])
        assert (last["status"], last["deliveredAt"]) == ("failed", first["deliveredAt"])
        assert last["finishedAt"] > first["finishedAt"]
        for query, found in (
            ("", 1),
            ("status=failed", 0),
            ("status=failed&includeDelivered=false", 0),
            ("status=failed&includeDelivered=true", 1),
        ):
            listed = await api.done("GET", f"/v1/deliveries?{query}")
            assert len(listed["data"]) == found, query
        assert await count(api, delivery) == 0
        assert await count(api, delivery, includeDelivered=True) == 1

    run_scenarios(scenario)


def test_a_bulk_retry_sends_what_was_delivered_before_only_when_asked(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        engine.transport.will(URL, 200, 500, 500, 500)
        api = await opened(engine.harness)
        step = engine.harness.service.redeliver.bulk_step
        async with engine.delivering():
            delivery = await engine.harness.complete()
            await engine.later()
            await retry(api, delivery)
            await engine.later(HOUR)
            for include_delivered, sent in ((False, 4), (True, 5)):
                path = f"/v1/webhooks/{delivery.webhook_id}/retries"
                body = {"since": "2026-01-01T00:00:00Z", "includeDelivered": include_delivered}
                job = await api.done("POST", path, body)
                while await engine.harness.do(step, delivery.account_id, UUID(job["id"]), 10):
                    pass
                await engine.later()
                assert len(engine.sent) == sent
                done = await api.done("GET", f"{path}/{job['id']}")
                assert (done["retried"], done["includeDelivered"]) == (
                    int(include_delivered),
                    include_delivered,
                )

    run_scenarios(scenario)
