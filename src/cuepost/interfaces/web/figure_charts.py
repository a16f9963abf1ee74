"""The figures of an account or an endpoint, as charts over a range of time."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from cuepost.application.delivery_figures import Figures, Range
from cuepost.domain.comparison import Comparison
from cuepost.domain.delivery_counts import Counts, Interval
from cuepost.interfaces.web.charts import proportions
from cuepost.interfaces.web.delivery_filters import began_within
from cuepost.interfaces.web.time_charts import Kind, Sample, TimeChart, lines, stacked_bars

RANGES = {
    Range.HOUR: "1 hour",
    Range.DAY: "24 hours",
    Range.WEEK: "7 days",
    Range.MONTH: "30 days",
}
ENDS = (Kind("delivered", "delivered"), Kind("failed", "failed"), Kind("cancelled", "cancelled"))
NO_CHANGE = "no change"
LATENCIES = (Kind("p50", "p50"), Kind("p95", "p95"))


@dataclass(frozen=True, slots=True)
class FigureCharts:
    """`changes` has the text of each figure that is compared with those of the period `before`."""

    span: Range
    counts: Counts
    changes: Mapping[str, str]
    before: str
    deliveries: TimeChart
    latency: TimeChart
    classes: Sequence[tuple[str, int, float]]


def range_in(text: str) -> Range:
    """From an address; a value that is none of the ranges means a day."""
    return next((each for each in Range if each.value == text), Range.DAY)


def figure_charts(figures: Figures, span: Range) -> FigureCharts:
    ends = [Sample(bar.since, _ends(bar.counts), _query(bar, span)) for bar in figures.bars]
    latencies = [Sample(bar.since, _latencies(bar.counts)) for bar in figures.bars]
    return FigureCharts(
        span,
        figures.counts,
        _changes(figures.comparison) if figures.comparison else {},
        f"the {RANGES[span].removeprefix('1 ')} before",
        stacked_bars("Deliveries by outcome", ends, ENDS, span.bar),
        lines("Latency of attempts", latencies, LATENCIES, span.bar, _latency),
        proportions(figures.counts.attempts),
    )


def _latency(millis: float) -> str:
    """Short, because an axis has little room."""
    return f"{millis / 1000:.3g} s" if millis >= 1000 else f"{millis:.3g} ms"


def _changes(comparison: Comparison) -> dict[str, str]:
    return {
        name: _points(change) if name == "success_rate" else _percent(change)
        for name, change in asdict(comparison).items()
        if change is not None
    }


def _points(difference: float) -> str:
    points = round(difference * 100, 1)
    return _signed(f"{points:+.1f} points") if points else NO_CHANGE


def _percent(change: float) -> str:
    if change == float("inf"):
        return "from 0"
    percent = round(change * 100)
    return _signed(f"{percent:+,} %") if percent else NO_CHANGE


def _signed(number: str) -> str:
    """With a minus sign that is as wide as the plus sign."""
    return number.replace("-", "\N{MINUS SIGN}")


def _query(bar: Interval, span: Range) -> str:
    """Without deliveries there is nothing to list."""
    return began_within(bar.since, bar.since + span.bar) if bar.counts.total else ""


def _ends(counts: Counts) -> dict[str, float]:
    return {status.value: count for status, count in counts.by_status.items()}


def _latencies(counts: Counts) -> dict[str, float]:
    values = {"p50": counts.p50_ms, "p95": counts.p95_ms}
    return {key: value for key, value in values.items() if value is not None}
