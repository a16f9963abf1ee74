"""Broken set-ups, with the real engine: in one call an agent learns what the cause is."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuepost.domain.attempt import TLS_EXPLANATIONS, Outcome, TlsFault
from cuepost.doors.mcp.calls import Calls
from cuepost.doors.mcp.table import BY_NAME
from cuepost.testing import HANGS
from tests.engine.broken_set_ups import BROKEN, URL, answering, exported, refused
from tests.support.stage import HOUR, MINUTE, Play, Scenario, Stage


async def explained(stage: Stage, **arguments: Any) -> dict[str, Any]:
    calls = Calls(stage.world.service)
    told = await calls.call(stage.world.owner, BY_NAME["webhooks_explain"], arguments)
    assert not told.is_error, told.text
    return told.data


def explaining(name: str) -> Scenario:
    set_up, cause = BROKEN[name]

    async def scenario(stage: Stage) -> None:
        async with stage.delivering():
            await set_up(stage)
            found = await explained(stage)
        assert (found["cause"], found["arrived"]) == (cause, False), name
        assert found["findings"][0]["cause"] == cause
        assert found["explanation"].endswith(".")
        assert found["fix"].endswith(".")

    return scenario


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_set_up_is_named(play_embedded: Play, name: str) -> None:
    play_embedded(explaining(name))


def test_every_broken_set_up_is_named_on_postgresql_as_well(play_postgres: Play) -> None:
    play_postgres(*map(explaining, BROKEN))


def test_what_is_tried_again_says_when(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.will(URL, 404)
        await stage.world.endpoint()
        async with stage.delivering():
            await exported(stage)
            await stage.later(timedelta(seconds=5))
            found = await explained(stage)
        assert found["cause"] == "wrong_path"
        assert found["explanation"] == (
            f"{URL} answered 404 (Not Found). It will be tried again at 2026-01-02T03:05:05.678Z."
        )
        [finding] = found["findings"]
        assert (finding["deliveryStatus"], finding["nextAttemptAt"]) == (
            "retrying",
            "2026-01-02T03:05:05.678Z",
        )

    play(scenario)


def test_what_failed_for_good_can_be_sent_again(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.delivering():
            await answering(404)(stage)
            found = await explained(stage)
            assert found["explanation"] == (
                f"{URL} answered 404 (Not Found). It was tried 3 times, and is not tried again by "
                "itself."
            )
            assert found["fix"].endswith("Then send the delivery again.")
            [finding] = found["findings"]
            await stage.world.do(
                stage.world.service.redeliver.one,
                stage.world.owner,
                UUID(finding["webhookId"]),
                UUID(finding["deliveryId"]),
            )
            await stage.later(MINUTE)
            after = await explained(stage)
        assert (after["cause"], after["arrived"]) == ("delivered", True)

    play_embedded(scenario)


def test_an_expired_certificate_is_named_with_its_own_fix(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.delivering():
            await refused(TlsFault.CERTIFICATE_EXPIRED)(stage)
            found = await explained(stage)
        expired = TLS_EXPLANATIONS[TlsFault.CERTIFICATE_EXPIRED]
        assert found["cause"] == "certificate_expired"
        assert found["explanation"] == (
            f"{URL}: {expired.sentence} It was tried 3 times, and is not tried again by itself."
        )
        assert found["fix"] == f"{expired.fix} Then send the delivery again."

    play(scenario)


def test_a_refusal_of_tls_without_its_fault_names_what_can_be_wrong_and_what_tells_it(
    play_embedded: Play,
) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.delivering():
            await answering(Outcome.TLS_ERROR)(stage)
            found = await explained(stage)
        assert found["cause"] == "tls_error"
        assert found["fix"] == (
            f"Run 'cuepost receiver check {URL}': it tells whether the certificate has expired, is "
            "for another host name, or comes from an unknown authority or without its chain. TLS "
            "has to be 1.2 or newer. Then send the delivery again."
        )

    play_embedded(scenario)


def test_without_a_worker_it_waits_to_be_sent(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        await exported(stage)
        await stage.later(MINUTE)
        found = await explained(stage)
        assert found["cause"] == "not_sent_yet"
        assert found["explanation"] == (
            f"It waits to be sent to {URL} since 2026-01-02T03:04:05.678Z; that is 60 seconds."
        )

    play(scenario)


def test_what_is_in_flight_again_says_so(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.will(URL, 500, HANGS)
        await stage.world.endpoint()
        async with stage.delivering():
            await exported(stage)
            await stage.later(timedelta(seconds=65))
            found = await explained(stage)
        assert found["explanation"].endswith("Another attempt is under way.")

    play_embedded(scenario)


def test_what_arrived_says_when_although_its_window_has_ended_since(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        project = await world.project(access_expires_at=stage.clock.now() + MINUTE)
        async with stage.delivering():
            await world.report(world.milestone(project))
            await stage.later(HOUR)
            found = await explained(stage)
        assert (found["cause"], found["arrived"]) == ("delivered", True)
        assert found["explanation"] == (
            f"It did arrive: {URL} took it at 2026-01-02T03:04:05.678Z and answered 200."
        )

    play(scenario)
