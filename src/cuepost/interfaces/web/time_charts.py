"""Charts over time as numbers for inline SVG: axes, bars and lines, and a table of the values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

WIDTH, HEIGHT = 720, 200
# Room for the labels of the axes, and for the value under the pointer at the top.
LEFT, TOP, BOTTOM = 64, 28, 30
_PLOT_WIDTH, _PLOT_HEIGHT = WIDTH - LEFT, HEIGHT - TOP - BOTTOM
_Y_STEPS = 4
_X_LABELS = 7
# A value that is not 0 is never invisible.
_LEAST_HEIGHT = 1.5


class Kind(NamedTuple):
    """One series: `key` names its values and its colour in the style sheet."""

    key: str
    name: str


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of one interval; a series without a value in it is absent.

    `query` filters a list to what the interval shows, if there is such a list.
    """

    since: datetime
    values: Mapping[str, float]
    query: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    position: float
    label: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    y: float
    height: float
    kind: str


@dataclass(frozen=True, slots=True)
class Slot:
    """One interval: where it is, what it shows, and its values in words."""

    since: datetime
    x: float
    width: float
    bars: Sequence[Bar]
    dots: Sequence[tuple[str, float]]
    cells: Sequence[str]
    words: str
    query: str

    @property
    def centre(self) -> float:
        return round(self.x + self.width / 2, 1)


@dataclass(frozen=True, slots=True)
class TimeChart:
    title: str
    interval: timedelta
    kinds: Sequence[Kind]
    slots: Sequence[Slot]
    lines: Sequence[tuple[str, str]]
    y_ticks: Sequence[Tick]
    x_ticks: Sequence[Tick]

    @property
    def is_empty(self) -> bool:
        return not any(slot.bars or slot.dots for slot in self.slots)

    @property
    def baseline(self) -> int:
        return HEIGHT - BOTTOM

    @property
    def size(self) -> tuple[int, int, int, int]:
        """Width, height, and where the plot begins from the left and from the top."""
        return WIDTH, HEIGHT, LEFT, TOP


def stacked_bars(
    title: str, samples: Sequence[Sample], kinds: Sequence[Kind], interval: timedelta
) -> TimeChart:
    """Counts, one series on top of the other; the first of `kinds` is at the bottom."""
    top = _round_up(max((sum(each.values.values()) for each in samples), default=0), least=4)

    def bars(sample: Sample) -> list[Bar]:
        made: list[Bar] = []
        y = float(HEIGHT - BOTTOM)
        for kind in kinds:
            if count := sample.values.get(kind.key):
                height = max(count / top * _PLOT_HEIGHT, _LEAST_HEIGHT)
                y -= height
                made.append(Bar(round(y, 1), round(height, 1), kind.key))
        return made

    slots = _slots(samples, kinds, _whole_number, bars=bars, missing="0")
    y_ticks = _ticks(top, _whole_number)
    return TimeChart(title, interval, kinds, slots, (), y_ticks, _x_ticks(slots, interval))


def lines(
    title: str,
    samples: Sequence[Sample],
    kinds: Sequence[Kind],
    interval: timedelta,
    show: Callable[[float], str],
) -> TimeChart:
    """One line for each series; an interval without a value interrupts it."""
    highest = max((value for each in samples for value in each.values.values()), default=0)
    top = _round_up(highest, least=1)

    def dots(sample: Sample) -> list[tuple[str, float]]:
        return [
            (kind.key, _height_of(sample.values[kind.key], top))
            for kind in kinds
            if kind.key in sample.values
        ]

    slots = _slots(samples, kinds, show, dots=dots, missing="–")
    paths = [(kind.key, path) for kind in kinds if (path := _path(kind.key, slots))]
    y_ticks = _ticks(top, show)
    return TimeChart(title, interval, kinds, slots, paths, y_ticks, _x_ticks(slots, interval))


def _slots(
    samples: Sequence[Sample],
    kinds: Sequence[Kind],
    show: Callable[[float], str],
    *,
    bars: Callable[[Sample], Sequence[Bar]] = lambda _: (),
    dots: Callable[[Sample], Sequence[tuple[str, float]]] = lambda _: (),
    missing: str,
) -> list[Slot]:
    step = _PLOT_WIDTH / max(len(samples), 1)
    made: list[Slot] = []
    for place, sample in enumerate(samples):
        values = [sample.values.get(kind.key) for kind in kinds]
        cells = [missing if value is None else show(value) for value in values]
        said = [
            f"{cell} {kind.name}"
            for kind, cell, value in zip(kinds, cells, values, strict=True)
            if value
        ]
        made.append(
            Slot(
                since=sample.since,
                x=round(LEFT + place * step, 1),
                width=round(step, 1),
                bars=bars(sample),
                dots=dots(sample),
                cells=cells,
                words=", ".join(said) or "none",
                query=sample.query,
            )
        )
    return made


def _path(key: str, slots: Sequence[Slot]) -> str:
    """The commands of an SVG path: a new stroke after each interval without a value."""
    commands: list[str] = []
    pen_is_down = False
    for slot in slots:
        height = dict(slot.dots).get(key)
        if height is not None:
            commands.append(f"{'L' if pen_is_down else 'M'}{slot.centre} {height}")
        pen_is_down = height is not None
    return " ".join(commands)


def _height_of(value: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - value / top * _PLOT_HEIGHT, 1)


def _ticks(top: float, show: Callable[[float], str]) -> list[Tick]:
    values = [top * place / _Y_STEPS for place in range(_Y_STEPS + 1)]
    return [Tick(_height_of(value, top), show(value) if value else "0") for value in values]


def _x_ticks(slots: Sequence[Slot], interval: timedelta) -> list[Tick]:
    """The time of day, or the day where an interval is longer than an hour."""
    by_day = interval > timedelta(hours=1)
    shown = [slot for slot in slots if not by_day or slot.since.hour == 0]
    every = max(-(-len(shown) // _X_LABELS), 1)
    pattern = "%b %-d" if by_day else "%H:%M"
    return [Tick(slot.x, slot.since.strftime(pattern), slot.since) for slot in shown[::every]]


def _round_up(highest: float, *, least: float) -> float:
    """A top of the axis whose quarters are round numbers."""
    wanted = max(highest, least)
    unit = 1.0
    while unit * 40 < wanted:
        unit *= 10
    while unit * 4 > wanted and unit > least / 4:
        unit /= 10
    for factor in (1, 2, 2.5, 5, 10):
        top = unit * factor * _Y_STEPS
        if top >= wanted and (least < _Y_STEPS or (unit * factor).is_integer()):
            return top
    raise AssertionError(f"no axis holds {highest}")


def _whole_number(count: float) -> str:
    return f"{count:,.0f}"
