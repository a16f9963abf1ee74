"""Axes, bars and lines of the charts over time."""

from datetime import UTC, datetime, timedelta

import pytest

from cuepost.interfaces.web.time_charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    TOP,
    WIDTH,
    Kind,
    Sample,
    TimeChart,
    lines,
    stacked_bars,
)

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DELIVERED, FAILED = Kind("delivered", "delivered"), Kind("failed", "failed")
KINDS = (DELIVERED, FAILED)
P50, P95 = Kind("p50", "p50"), Kind("p95", "p95")


def counts(*values: tuple[int, int]) -> TimeChart:
    samples = [
        Sample(NOON + place * HOUR, {"delivered": delivered, "failed": failed})
        for place, (delivered, failed) in enumerate(values)
    ]
    return stacked_bars("Deliveries", samples, KINDS, HOUR)


def test_bars_are_stacked_from_the_axis_up() -> None:
    chart = counts((3, 1), (0, 0))
    first, second = chart.slots
    plot = HEIGHT - TOP - BOTTOM
    assert [(bar.kind, bar.height) for bar in first.bars] == [
        ("delivered", round(plot * 3 / 4, 1)),
        ("failed", round(plot / 4, 1)),
    ]
    assert first.bars[0].y + first.bars[0].height == HEIGHT - BOTTOM
    assert first.bars[1].y == TOP
    assert second.bars == []


def test_a_slot_says_what_it_shows() -> None:
    chart = counts((1200, 1), (0, 0))
    assert [slot.words for slot in chart.slots] == ["1,200 delivered, 1 failed", "none"]
    assert [slot.cells for slot in chart.slots] == [["1,200", "1"], ["0", "0"]]


def test_the_slots_fill_the_plot() -> None:
    chart = counts(*[(1, 0)] * 24)
    assert chart.slots[0].x == LEFT
    assert chart.slots[-1].x + chart.slots[-1].width == pytest.approx(WIDTH, abs=1)


@pytest.mark.parametrize(
    ("highest", "labels"),
    [
        (0, ["0", "1", "2", "3", "4"]),
        (3, ["0", "1", "2", "3", "4"]),
        (5, ["0", "2", "4", "6", "8"]),
        (17, ["0", "5", "10", "15", "20"]),
        (41, ["0", "20", "40", "60", "80"]),
        (85, ["0", "25", "50", "75", "100"]),
        (999, ["0", "250", "500", "750", "1,000"]),
        (123_456, ["0", "50,000", "100,000", "150,000", "200,000"]),
    ],
)
def test_the_axis_has_round_numbers(highest: int, labels: list[str]) -> None:
    assert [tick.label for tick in counts((highest, 0)).y_ticks] == labels


def test_no_bar_is_taller_than_the_plot() -> None:
    for highest in range(3000):
        [slot] = counts((highest, 0)).slots
        assert min((bar.y for bar in slot.bars), default=TOP) >= TOP


def test_one_among_a_million_is_visible() -> None:
    [_, small] = counts((1_000_000, 0), (0, 1)).slots
    assert small.bars[0].height >= 1


def test_a_chart_without_values_is_empty() -> None:
    assert counts((0, 0)).is_empty
    assert not counts((0, 1)).is_empty


def test_a_line_is_interrupted_where_there_is_no_value() -> None:
    samples = [
        Sample(NOON, {"p50": 10.0}),
        Sample(NOON + HOUR, {"p50": 20.0, "p95": 40.0}),
        Sample(NOON + 2 * HOUR, {}),
        Sample(NOON + 3 * HOUR, {"p50": 5.0}),
    ]
    chart = lines("Latency", samples, (P50, P95), HOUR, lambda value: f"{value:.0f} ms")
    paths = dict(chart.lines)
    assert paths["p50"].count("M") == 2
    assert paths["p50"].count("L") == 1
    assert [slot.words for slot in chart.slots] == [
        "10 ms p50",
        "20 ms p50, 40 ms p95",
        "none",
        "5 ms p50",
    ]
    assert chart.slots[2].cells == ["–", "–"]
    assert chart.y_ticks[-1].label == "40 ms"


@pytest.mark.parametrize(
    ("interval", "count", "labels"),
    [
        (timedelta(minutes=5), 12, ["12:00", "12:10", "12:20", "12:30", "12:40", "12:50"]),
        (HOUR, 24, ["12:00", "16:00", "20:00", "00:00", "04:00", "08:00"]),
        (timedelta(hours=6), 28, [f"May {day}" for day in range(5, 12)]),
    ],
)
def test_the_time_axis_says_the_time_or_the_day(
    interval: timedelta, count: int, labels: list[str]
) -> None:
    samples = [Sample(NOON + place * interval, {"delivered": 1}) for place in range(count)]
    chart = stacked_bars("Deliveries", samples, KINDS, interval)
    assert [tick.label for tick in chart.x_ticks] == labels


def test_a_month_has_a_label_for_some_of_its_days() -> None:
    day = timedelta(days=1)
    samples = [Sample(NOON.replace(hour=0) + place * day, {"failed": 1}) for place in range(30)]
    chart = stacked_bars("Deliveries", samples, KINDS, day)
    assert [tick.label for tick in chart.x_ticks] == [
        "May 4",
        "May 9",
        "May 14",
        "May 19",
        "May 24",
        "May 29",
    ]
