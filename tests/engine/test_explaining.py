"""Broken set-ups, with the real engine: in one call an agent learns what the cause is."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuepost.domain.attempt import TLS_EXPLANATIONS, Outcome, TlsFault
from cuepost.interfaces.mcp.calls import Calls
from cuepost.interfaces.mcp.table import BY_NAME
from cuepost.testing import HANGS
from tests.engine.broken_set_ups import BROKEN, URL, answering, exported, refused
from tests.support.engine_harness import HOUR, MINUTE, EngineHarness, RunScenarios, Scenario


async def explained(engine: EngineHarness, **arguments: Any) -> dict[str, Any]:
    calls = Calls(engine.harness.service)
    reported = await calls.call(engine.harness.owner, BY_NAME["webhooks_explain"], arguments)
    assert not reported.is_error, reported.text
    return reported.data


def explaining(name: str) -> Scenario:
    set_up, cause = BROKEN[name]

    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering():
            await set_up(engine)
            found = await explained(engine)
        assert (found["cause"], found["arrived"]) == (cause, False), name
        assert found["findings"][0]["cause"] == cause
        assert found["explanation"].endswith(".")
        assert found["fix"].endswith(".")

    return scenario


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_set_up_is_named(run_embedded: RunScenarios, name: str) -> None:
    run_embedded(explaining(name))


def test_every_broken_set_up_is_named_on_postgresql_as_well(run_postgres: RunScenarios) -> None:
    run_postgres(*map(explaining, BROKEN))


def test_what_is_tried_again_says_when(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        engine.transport.will(URL, 404)
        await engine.harness.endpoint()
        async with engine.delivering():
            await exported(engine)
            await engine.later(timedelta(seconds=5))
            found = await explained(engine)
        assert found["cause"] == "wrong_path"
        assert found["explanation"] == (
            f"{URL} answered 404 (Not Found). It will be tried again at 2026-01-02T03:05:05.678Z."
        )
        [finding] = found["findings"]
        assert (finding["deliveryStatus"], finding["nextAttemptAt"]) == (
            "retrying",
            "2026-01-02T03:05:05.678Z",
        )

    run_scenarios(scenario)


def test_what_failed_for_good_can_be_sent_again(run_embedded: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering():
            await answering(404)(engine)
            found = await explained(engine)
            assert found["explanation"] == (
                f"{URL} answered 404 (Not Found). It was tried 3 times, and is not retried "
                "automatically."
            )
            assert found["fix"].endswith("Then send the delivery again.")
            [finding] = found["findings"]
            await engine.harness.do(
                engine.harness.service.redeliver.one,
                engine.harness.owner,
                UUID(finding["webhookId"]),
                UUID(finding["deliveryId"]),
            )
            await engine.later(MINUTE)
            after = await explained(engine)
        assert (after["cause"], after["arrived"]) == ("delivered", True)

    run_embedded(scenario)


def test_an_expired_certificate_is_named_with_its_own_fix(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering():
            await refused(TlsFault.CERTIFICATE_EXPIRED)(engine)
            found = await explained(engine)
        expired = TLS_EXPLANATIONS[TlsFault.CERTIFICATE_EXPIRED]
        assert found["cause"] == "certificate_expired"
        assert found["explanation"] == (
            f"{URL}: {expired.sentence} It was tried 3 times, and is not retried automatically."
        )
        assert found["fix"] == f"{expired.fix} Then send the delivery again."

    run_scenarios(scenario)


def test_a_refusal_of_tls_without_its_fault_names_what_can_be_wrong_and_what_tells_it(
    run_embedded: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering():
            await answering(Outcome.TLS_ERROR)(engine)
            found = await explained(engine)
        assert found["cause"] == "tls_error"
        assert found["fix"] == (
            f"Run 'cuepost receiver check {URL}': it shows whether the certificate has expired, "
            "is for another host name, is from an unknown authority, or lacks its chain. TLS must "
            "be 1.2 or newer. Then send the delivery again."
        )

    run_embedded(scenario)


def test_without_a_worker_it_waits_to_be_sent(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        await exported(engine)
        await engine.later(MINUTE)
        found = await explained(engine)
        assert found["cause"] == "not_sent_yet"
        assert found["explanation"] == (
            f"It has waited to be sent to {URL} since 2026-01-02T03:04:05.678Z, for 60 seconds."
        )

    run_scenarios(scenario)


def test_what_is_in_flight_again_says_so(run_embedded: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        engine.transport.will(URL, 500, HANGS)
        await engine.harness.endpoint()
        async with engine.delivering():
            await exported(engine)
            await engine.later(timedelta(seconds=65))
            found = await explained(engine)
        assert found["explanation"].endswith("Another attempt is under way.")

    run_embedded(scenario)


def test_what_arrived_says_when_although_its_window_has_ended_since(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        project = await harness.project(access_expires_at=engine.clock.now() + MINUTE)
        async with engine.delivering():
            await harness.report(harness.milestone(project))
            await engine.later(HOUR)
            found = await explained(engine)
        assert (found["cause"], found["arrived"]) == ("delivered", True)
        assert found["explanation"] == (
            f"It was delivered: {URL} accepted it at 2026-01-02T03:04:05.678Z and answered 200."
        )

    run_scenarios(scenario)
