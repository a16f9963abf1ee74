"""Compares the figures of a run with the aims: each aim is a ratio of two figures with a bound."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.figures import Figure

APP, STORE = "app CPU s per 1,000", "store CPU s per 1,000"


class Figures:
    """Figures by key; a figure that was not measured raises KeyError."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self._by_key = {figure.key: figure for figure in figures}

    def __getitem__(self, key: str) -> float:
        return self._by_key[key].value

    def raw(self, key: str, name: str) -> float:
        return self._by_key[key].raw[name]

    def cpu(self, key: str) -> float:
        """The CPU of the service and of the store."""
        return self.raw(key, APP) + self._by_key[key].raw.get(STORE, 0.0)

    def keys(self, begin: str, end: str) -> list[str]:
        found = [key for key in self._by_key if key.startswith(begin) and key.endswith(end)]
        if not found:
            raise KeyError(begin + "…" + end)
        return found


Measure = Callable[[Figures], float]


@dataclass(frozen=True, slots=True)
class Aim:
    """A bound on a ratio to another figure: a minimum with `at_least`, else a maximum."""

    number: int
    text: str
    unit: str
    measured: Measure
    against: str
    beside: Measure
    bound: float
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    number: int
    text: str
    unit: str
    against: str
    bound: str
    measured: float | None = None
    beside: float | None = None
    ratio: float | None = None
    met: bool | None = None

    def kept(self) -> dict[str, Any]:
        return asdict(self)


def judge(aims: Sequence[Aim], figures: Sequence[Figure]) -> list[Judged]:
    """Aims that are not met come first, then those that were not measured."""
    found = [_judged(aim, Figures(figures)) for aim in aims]
    order = {False: 0, None: 1, True: 2}
    return sorted(found, key=lambda judged: (order[judged.met], judged.number))


def _judged(aim: Aim, figures: Figures) -> Judged:
    bound = f"{'≥' if aim.at_least else '≤'} {aim.bound:g} ×"
    known = (aim.number, aim.text, aim.unit, aim.against, bound)
    try:
        measured, beside = aim.measured(figures), aim.beside(figures)
    except KeyError:
        return Judged(*known)
    ratio = measured / beside
    met = ratio >= aim.bound if aim.at_least else ratio <= aim.bound
    return Judged(*known, measured, beside, ratio, met)


def value(key: str) -> Measure:
    return lambda figures: figures[key]


def raw(key: str, name: str) -> Measure:
    return lambda figures: figures.raw(key, name)


def cpu(key: str) -> Measure:
    return lambda figures: figures.cpu(key)


def constant(number: float) -> Measure:
    return lambda _: number
