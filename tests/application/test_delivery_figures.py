"""Figures for charts: of the last day, or of the newest ones where there were very many."""

from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application import delivery_figures
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.errors import WebhooksNotEnabled
from tests.application.harness import Harness
from tests.support.records import Records


async def ended(harness: Harness, outcome: Outcome, status: int | None, millis: float) -> None:
    delivery = await harness.complete()
    attempt = Records(harness.clock, harness.ids).attempt(
        delivery, outcome=outcome, response_status=status, duration_ms=millis
    )
    await harness.do(lambda t: t.attempts.add([attempt]))
    good = outcome is Outcome.DELIVERED
    await harness.end(delivery, DeliveryStatus.DELIVERED if good else DeliveryStatus.FAILED)


async def busy_endpoint(harness: Harness) -> UUID:
    webhook_id = (await harness.endpoint()).view.endpoint.id
    await ended(harness, Outcome.DELIVERED, 200, 10)
    harness.clock.advance(hours=25)
    for millis in (20, 30, 40):
        await ended(harness, Outcome.DELIVERED, 204, millis)
    await ended(harness, Outcome.TIMEOUT, None, 15_000)
    harness.clock.advance(hours=1)
    return webhook_id


async def test_a_page_shows_the_last_day(harness: Harness) -> None:
    webhook_id = await busy_endpoint(harness)
    figures = await harness.see(harness.service.figures.of_endpoint, harness.owner, webhook_id)
    now = harness.clock.now()
    assert (figures.since, figures.until) == (now - timedelta(days=1), now)
    assert figures.counts == {DeliveryStatus.DELIVERED: 3, DeliveryStatus.FAILED: 1}
    assert figures.outcomes == {Outcome.DELIVERED: 3, Outcome.TIMEOUT: 1}
    assert figures.classes == {"2xx": 3, "none": 1}
    assert (figures.p50_ms, figures.p95_ms) == (30, 15_000)
    assert (figures.success_rate, figures.total) == (0.75, 4)
    assert [bar.total for bar in figures.bars] == [0] * 23 + [4]


async def test_a_busy_endpoint_is_judged_by_its_newest_deliveries(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id = await busy_endpoint(harness)
    monkeypatch.setattr(delivery_figures, "IN_A_LIST", 2)
    found = await harness.see(harness.service.figures.of_endpoints, harness.owner, [webhook_id])
    assert found[webhook_id].total == 2
    assert found[webhook_id].since > harness.clock.now() - timedelta(hours=2)


async def test_attempts_that_do_not_count_are_in_no_figure(harness: Harness) -> None:
    webhook_id = (await harness.endpoint()).view.endpoint.id
    delivery = await harness.complete()
    records = Records(harness.clock, harness.ids)
    lost = [
        records.attempt(
            delivery, budget=0, number=number, outcome=outcome, response_status=None, duration_ms=0
        )
        for number, outcome in enumerate((Outcome.INTERRUPTED, Outcome.SUPERSEDED), start=1)
    ]
    made = records.attempt(delivery, outcome=Outcome.DELIVERED, response_status=200, duration_ms=30)
    await harness.do(lambda t: t.attempts.add([made, *lost]))
    await harness.end(delivery, DeliveryStatus.DELIVERED)
    figures = await harness.see(harness.service.figures.of_endpoint, harness.owner, webhook_id)
    assert (figures.outcomes, figures.classes) == ({Outcome.DELIVERED: 1}, {"2xx": 1})
    assert (figures.p50_ms, figures.p95_ms) == (30, 30)


async def test_an_idle_endpoint_has_no_rate(harness: Harness) -> None:
    webhook_id = (await harness.endpoint()).view.endpoint.id
    figures = await harness.see(harness.service.figures.of_endpoint, harness.owner, webhook_id)
    assert (figures.total, figures.success_rate, figures.p50_ms) == (0, None, None)


async def test_figures_are_for_accounts_with_access(harness: Harness) -> None:
    closed = await harness.new_owner(webhooks_enabled=False)
    with pytest.raises(WebhooksNotEnabled):
        await harness.see(harness.service.figures.of_endpoints, closed, [])
