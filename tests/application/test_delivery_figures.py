"""Figures for charts: of an hour, a day, a week or a month, from the counts."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.delivery_figures import Range
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.delivery_counts import AttemptClass
from cuepost.domain.errors import WebhooksNotEnabled
from cuepost.engine.maintenance import SHORT_COUNTS_LIFE
from tests.application.harness import RULES, Harness


async def ended(harness: Harness, outcome: Outcome, status: int | None, millis: float) -> None:
    delivery = await harness.complete()
    good = outcome is Outcome.DELIVERED
    await harness.record(
        delivery,
        DeliveryStatus.DELIVERED if good else DeliveryStatus.FAILED,
        outcome=outcome,
        response_status=status,
        duration_ms=millis,
    )


async def busy_endpoint(harness: Harness) -> UUID:
    webhook_id = (await harness.endpoint()).view.endpoint.id
    await ended(harness, Outcome.DELIVERED, 200, 10)
    harness.clock.advance(hours=25)
    for millis in (20, 30, 40):
        await ended(harness, Outcome.DELIVERED, 204, millis)
    await ended(harness, Outcome.TIMEOUT, None, 15_000)
    return webhook_id


async def test_a_page_shows_the_last_day(harness: Harness) -> None:
    webhook_id = await busy_endpoint(harness)
    figures = await harness.see(harness.service.figures.of_endpoint, harness.owner, webhook_id)
    now = harness.clock.now()
    assert figures.until - figures.since == timedelta(days=1)
    assert timedelta(0) < figures.until - now <= timedelta(hours=1)
    counts = figures.counts
    assert counts.by_status == {DeliveryStatus.DELIVERED: 3, DeliveryStatus.FAILED: 1}
    assert counts.attempts == {AttemptClass.ACKNOWLEDGED: 3, AttemptClass.TIMEOUT: 1}
    assert counts.p50_ms == pytest.approx(37.5)
    assert counts.p95_ms == 10_000
    assert (counts.success_rate, counts.total) == (0.75, 4)
    assert [bar.counts.total for bar in figures.bars] == [0] * 23 + [4]


@pytest.mark.parametrize(
    ("span", "total", "bar"),
    [
        (Range.HOUR, 4, timedelta(minutes=5)),
        (Range.DAY, 4, timedelta(hours=1)),
        (Range.WEEK, 5, timedelta(hours=6)),
        (Range.MONTH, 5, timedelta(days=1)),
    ],
)
async def test_a_range_has_bars_that_end_with_the_present(
    harness: Harness, span: Range, total: int, bar: timedelta
) -> None:
    await busy_endpoint(harness)
    figures = await harness.see(harness.service.figures.of_account, harness.owner, span)
    assert figures.counts.total == total
    assert [each.since for each in figures.bars] == [
        figures.since + place * bar for place in range(span.bars)
    ]
    assert figures.bars[-1].since <= harness.clock.now() < figures.until
    assert figures.bars[-1].counts.total == 4


async def test_a_delivery_that_was_sent_again_is_counted_once(harness: Harness) -> None:
    webhook_id = await busy_endpoint(harness)
    [failed] = await harness.deliveries(status=DeliveryStatus.FAILED)
    await harness.do(harness.service.redeliver.one, harness.owner, webhook_id, failed.id)
    figures = await harness.see(harness.service.figures.of_endpoint, harness.owner, webhook_id)
    assert figures.counts.by_status == {DeliveryStatus.DELIVERED: 3}
    assert figures.counts.attempts[AttemptClass.TIMEOUT] == 1


async def test_an_idle_endpoint_has_no_rate(harness: Harness) -> None:
    webhook_id = (await harness.endpoint()).view.endpoint.id
    figures = await harness.see(harness.service.figures.of_endpoint, harness.owner, webhook_id)
    counts = figures.counts
    assert (counts.total, counts.success_rate, counts.p50_ms) == (0, None, None)


async def test_figures_are_for_accounts_with_access(harness: Harness) -> None:
    closed = await harness.new_owner(webhooks_enabled=False)
    with pytest.raises(WebhooksNotEnabled):
        await harness.see(harness.service.figures.of_endpoints, closed, [])
    with pytest.raises(WebhooksNotEnabled):
        await harness.see(harness.service.figures.of_account, closed)


async def test_attempts_that_do_not_count_are_in_no_figure(harness: Harness) -> None:
    webhook_id = (await harness.endpoint()).view.endpoint.id
    delivery = await harness.complete()
    await harness.requeue(delivery, DeliveryStatus.DELIVERING)
    [(worker,)] = [(row.worker,) for row in (await harness.dump())["queue"]]
    now = harness.clock.now()
    await harness.do(lambda t: t.queue.put_back(worker, [delivery.id], now, None, may_be_sent=True))
    await harness.record(delivery, DeliveryStatus.DELIVERED, outcome=Outcome.DELIVERED)
    attempts = await harness.see(lambda t: t.attempts.of_delivery(harness.account.id, delivery.id))
    assert {each.outcome for each in attempts} == {Outcome.INTERRUPTED, Outcome.DELIVERED}
    figures = await harness.see(harness.service.figures.of_endpoint, harness.owner, webhook_id)
    assert figures.counts.attempts == {AttemptClass.ACKNOWLEDGED: 1}
    assert sum(figures.counts.latency) == 1


async def test_the_account_is_compared_with_the_period_of_the_same_length_before(
    harness: Harness,
) -> None:
    await harness.endpoint()
    for outcome in (Outcome.DELIVERED, Outcome.TIMEOUT, Outcome.DELIVERED, Outcome.DELIVERED):
        await ended(harness, outcome, None, 10)
    harness.clock.advance(hours=24)
    for _ in range(2):
        await ended(harness, Outcome.DELIVERED, 200, 10)
    figures = await harness.see(harness.service.figures.of_account, harness.owner)
    passed = (harness.clock.now() - figures.since) / timedelta(days=1)
    assert figures.counts.total == 2
    assert figures.comparison is not None
    assert figures.comparison.delivered == pytest.approx(2 / (3 * passed) - 1)
    assert figures.comparison.failed == -1
    assert figures.comparison.success_rate == 0.25


async def test_an_hour_is_compared_with_the_hour_before(harness: Harness) -> None:
    await harness.endpoint()
    for _ in range(3):
        await ended(harness, Outcome.DELIVERED, 200, 10)
    harness.clock.advance(hours=1)
    await ended(harness, Outcome.DELIVERED, 200, 10)
    figures = await harness.see(harness.service.figures.of_account, harness.owner, Range.HOUR)
    passed = (harness.clock.now() - figures.since) / timedelta(hours=1)
    assert figures.counts.total == 1
    assert figures.comparison is not None
    assert figures.comparison.delivered == pytest.approx(1 / (3 * passed) - 1)


async def test_nothing_is_compared_without_counts_of_the_period_before(harness: Harness) -> None:
    await harness.endpoint()
    await ended(harness, Outcome.DELIVERED, 200, 10)
    figures = await harness.see(harness.service.figures.of_account, harness.owner)
    assert (figures.counts.total, figures.comparison) == (1, None)


async def test_a_month_is_compared_where_counts_are_kept_for_two(harness: Harness) -> None:
    """Otherwise a part of the month before has been deleted."""
    await harness.endpoint()
    await ended(harness, Outcome.DELIVERED, 200, 10)
    harness.clock.advance(hours=31 * 24)
    await harness.store.prepare_days(harness.clock.now())
    await ended(harness, Outcome.DELIVERED, 200, 10)
    for days, is_compared in ((30, False), (59, False), (60, True)):
        kept = harness.reassembled(replace(RULES, retention=timedelta(days=days)))
        figures = await kept.see(kept.service.figures.of_account, kept.owner, Range.MONTH)
        assert figures.counts.total == 1
        assert (figures.comparison is not None) is is_compared


def test_short_counts_live_long_enough_to_compare_two_hours() -> None:
    assert 2 * Range.HOUR.length <= SHORT_COUNTS_LIFE
