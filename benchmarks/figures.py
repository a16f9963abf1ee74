"""What a benchmark reports: a figure, and another one of the same run to hold it against."""

from collections.abc import Sequence
from dataclasses import dataclass


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent of all do not exceed."""
    return sorted(values)[-(-len(values) * percent // 100) - 1]


@dataclass(frozen=True, slots=True)
class Comparison:
    name: str
    unit: str
    measured: float
    beside_name: str
    beside: float
    notes: str = ""

    @property
    def ratio(self) -> float:
        return self.measured / self.beside
