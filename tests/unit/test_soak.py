"""The long run's own judgement: what grows is noticed, what goes up and down is not."""

import pytest

from benchmarks.plot import charts
from benchmarks.soak import Report, Sample, growth


def sample(minutes: float, **changed: float) -> Sample:
    values = {"memory_mb": 100.0, "descriptors": 30.0, "tasks": 20.0} | changed
    return Sample(
        minutes=minutes,
        memory_mb=values["memory_mb"],
        descriptors=round(values["descriptors"]),
        tasks=round(values["tasks"]),
        waiting=0,
        cpu_seconds=minutes,
    )


def report(samples: list[Sample], *broken: str) -> Report:
    grown = {name: growth(samples, name) for name in ("memory_mb", "descriptors", "tasks")}
    return Report(60.0, 10, 10, 11, 0, {"delivered": 10}, grown, list(broken), samples)


def test_a_first_half_that_grows_and_a_second_that_does_not_is_well() -> None:
    samples = [sample(each, memory_mb=50.0 + min(each, 30)) for each in range(61)]
    assert report(samples).faults == []


def test_what_goes_up_and_down_is_well() -> None:
    samples = [sample(each, descriptors=30 + 10 * (each % 2)) for each in range(61)]
    assert report(samples).faults == []


@pytest.mark.parametrize(
    ("name", "step"), [("memory_mb", 0.5), ("descriptors", 0.5), ("tasks", 0.5)]
)
def test_what_goes_on_growing_is_a_fault(name: str, step: float) -> None:
    samples = [sample(each, **{name: 20.0 + step * each}) for each in range(61)]
    [fault] = report(samples).faults
    assert fault.startswith(f"{name} grew by 15.")


def test_a_broken_promise_is_a_fault() -> None:
    assert report([sample(0), sample(1)], "I1 lost").faults == ["I1 lost"]


def test_the_picture_has_a_line_for_each() -> None:
    drawn = charts([0, 1, 2], {"memory <MB>": [1, 2, 3], "tasks": [0, 0, 0]}, "a & b")
    assert drawn.count("<polyline") == 2
    assert "memory &lt;MB&gt;" in drawn
    assert "a &amp; b" in drawn
