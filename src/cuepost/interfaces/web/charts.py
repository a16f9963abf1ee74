"""Charts as numbers for inline SVG: the position and the height of each bar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuepost.application.delivery_figures import Figures
from cuepost.domain.attempt import Attempt
from cuepost.domain.delivery import DeliveryStatus
from cuepost.interfaces.web.rendering import share
from cuepost.interfaces.web.times import span

_S = DeliveryStatus
# The order of the stack, from the bottom.
ORDER = (_S.DELIVERED, _S.FAILED, _S.CANCELLED)


@dataclass(frozen=True, slots=True)
class Block:
    x: float
    y: float
    width: float
    height: float
    kind: str
    count: int = 0


@dataclass(frozen=True, slots=True)
class Chart:
    """`legend` names the kinds that occur; `scale` gives the period and the maximum of a bar."""

    width: int
    height: int
    blocks: Sequence[Block]
    words: str
    legend: Sequence[tuple[str, str]]
    scale: str


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    kind: str
    x: float
    width: float
    millis: float


def bars(figures: Figures, width: int, height: int) -> Chart:
    """Stacked by status; also as a sentence for screen readers."""
    highest = max((bar.counts.total for bar in figures.bars), default=0)
    step = width / len(figures.bars)
    blocks: list[Block] = []
    for index, bar in enumerate(figures.bars):
        top = float(height)
        for status in ORDER:
            count = bar.counts.by_status.get(status, 0)
            block_height = max(count / highest * (height - 2), 1.5) if count else 0.0
            top -= block_height
            if count:
                x = round(index * step, 1)
                sides = round(step * 0.8, 1), round(block_height, 1)
                blocks.append(Block(x, round(top, 1), *sides, status, count))
    by_status = figures.counts.by_status
    legend = [(status.value, status.value) for status in ORDER if status in by_status]
    length = span((figures.until - figures.since) / len(figures.bars))
    scale = f"A bar is {length}, the tallest is {highest}."
    return Chart(width, height, blocks, in_words(figures), legend, scale)


def in_words(figures: Figures) -> str:
    length = span(figures.until - figures.since)
    period = "Last 24 hours" if length == "1 d" else f"Last {length}"
    by_status = figures.counts.by_status
    if not by_status:
        return f"{period}: no delivery has ended."
    counted = ", ".join(f"{by_status[status]} {status}" for status in ORDER if status in by_status)
    rate = figures.counts.success_rate
    return f"{period}: {counted}" + (f"; {share(rate)} delivered." if rate is not None else ".")


def proportions(counts: Mapping[Any, int]) -> list[tuple[str, int, float]]:
    """Name, count, and share in percent; the largest first."""
    total = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [(str(name), count, round(count / total * 100, 1)) for name, count in ordered]


def waterfall(attempt: Attempt, width: float = 100.0) -> list[Phase]:
    """The phases of an attempt: DNS, connect, TLS and wait."""
    timings, at, scale = attempt.timings, 0.0, width / max(attempt.duration_ms, 0.001)
    phases: list[Phase] = []
    for name, kind, taken in (
        ("DNS", "dns", timings.dns_ms),
        ("Connect", "connect", timings.connect_ms),
        ("TLS", "tls", timings.tls_ms),
    ):
        if taken is not None:
            phases.append(Phase(name, kind, round(at * scale, 2), round(taken * scale, 2), taken))
            at += taken
    rest = max(attempt.duration_ms - at, 0.0)
    phases.append(Phase("Wait", "wait", round(at * scale, 2), round(rest * scale, 2), rest))
    return phases
