"""A fault that someone could make, put into the production code: the checker has to notice it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

Patch = pytest.MonkeyPatch
PutIn = Callable[[Patch], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """`breaks` are the promises one of which is seen broken; `seed` has found it before."""

    put_in: PutIn
    breaks: frozenset[str]
    seed: int

    @property
    def name(self) -> str:
        return self.put_in.__name__


FAULTS: list[Fault] = []


def breaks(*promises: str, seed: int = 1) -> Callable[[PutIn], PutIn]:
    """Enters it into the list."""

    def note(put_in: PutIn) -> PutIn:
        FAULTS.append(Fault(put_in, frozenset(promises), seed))
        return put_in

    return note
