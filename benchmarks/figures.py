"""The result of a benchmark: a figure with its details, or the reason why there is none."""

import statistics
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

FAILED = "failed"
MOST_WORDS = 300


def percentile(values: Sequence[float], percent: int) -> float:
    """The nearest-rank percentile."""
    return sorted(values)[-(-len(values) * percent // 100) - 1]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure, and another one of the same run to compare it with."""

    name: str
    unit: str
    measured: float
    beside_name: str
    beside: float
    notes: str = ""

    @property
    def ratio(self) -> float:
        return self.measured / self.beside


@dataclass(frozen=True, slots=True)
class Figure:
    """`key` is for the aims, `what` for readers; `raw` has further measurements."""

    key: str
    what: str
    unit: str
    value: float
    raw: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, key: str, comparison: Comparison) -> "Figure":
        beside = {comparison.beside_name: comparison.beside, "ratio": comparison.ratio}
        return cls(key, comparison.name, comparison.unit, comparison.measured, beside)

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> "Figure":
        return cls(**kept)

    def kept(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class NotRun:
    """A figure that cannot be measured here; its key begins with the name of the scenario."""

    key: str
    what: str
    why: str

    @property
    def failed(self) -> bool:
        return self.why.startswith(FAILED)

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> "NotRun":
        return cls(**kept)

    def kept(self) -> dict[str, Any]:
        return asdict(self)


def attempted(key: str, what: str, figures: Iterator[Figure | NotRun]) -> Iterator[Figure | NotRun]:
    """Reports a failure and goes on, so that one failure does not lose an hour of figures."""
    try:
        yield from figures
    except Exception as error:  # noqa: BLE001  # see above
        traceback.print_exc()
        yield NotRun(key, what, f"{FAILED}: {type(error).__name__} {error}"[:MOST_WORDS])


def middle(rounds: Sequence[Mapping[str, float]], of: str) -> dict[str, float]:
    """The median of each figure, and the range of the main one."""
    found = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    values = [each[of] for each in rounds]
    return found | {"lowest": min(values), "highest": max(values), "rounds": len(rounds)}
