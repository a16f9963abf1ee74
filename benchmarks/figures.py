"""What a benchmark reports: a figure, and another one of the same run to hold it against."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Comparison:
    name: str
    unit: str
    measured: float
    beside_name: str
    beside: float

    @property
    def ratio(self) -> float:
        return self.measured / self.beside
