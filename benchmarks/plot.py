"""Draws lines over time as SVG, as small charts one above the other."""

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT, MARGIN, LABELS = 760, 120, 44, 70

STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}line{stroke:#ddd}"
    "polyline{fill:none;stroke:#0b6;stroke-width:1.5}rect{fill:#fff}"
)


def charts(minutes: Sequence[float], lines: Mapping[str, Sequence[float]], title: str) -> str:
    """Each line has its own chart, which starts at zero."""
    height = MARGIN + len(lines) * (HEIGHT + MARGIN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<style>{STYLE}</style><rect width='{WIDTH}' height='{height}'/>",
        f'<text x="10" y="20" font-weight="bold">{escape(title)}</text>',
    ]
    for place, (name, values) in enumerate(lines.items()):
        parts += _chart(name, minutes, values, MARGIN + place * (HEIGHT + MARGIN))
    return "\n".join([*parts, "</svg>", ""])


def _chart(name: str, minutes: Sequence[float], values: Sequence[float], top: int) -> list[str]:
    highest, longest = max([*values, 1]) * 1.05, max([*minutes, 1e-9])
    left, right, bottom = LABELS, WIDTH - 10, top + HEIGHT
    points = " ".join(
        f"{left + (right - left) * minute / longest:.1f},{bottom - HEIGHT * value / highest:.1f}"
        for minute, value in zip(minutes, values, strict=True)
    )
    return [
        f'<text x="{left}" y="{top - 4}">{escape(name)}</text>',
        *(
            f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{value:,.0f}</text>'
            for value in (0, highest / 2, highest)
            for y in [bottom - HEIGHT * value / highest]
        ),
        f'<polyline points="{points}"/>',
        f'<text x="{right}" y="{bottom + 14}" text-anchor="end">{longest:.0f} min</text>',
    ]
