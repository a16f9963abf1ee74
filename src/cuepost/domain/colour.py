"""Colours of a theme that people can read: WCAG 2 contrast of at least AA."""

import re

AA = 4.5
COLOUR = r"^#[0-9a-fA-F]{6}\Z"
COLOUR_FAULT = ("invalid_colour", "Give a colour as #rrggbb, such as #0b6e4f.")
_COLOUR = re.compile(COLOUR)
_BLACK, _WHITE = "#000000", "#ffffff"
_STEPS = 100


def is_colour(text: str) -> bool:
    return _COLOUR.match(text) is not None


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def text_on(ground: str) -> str:
    """Black or white; one of them has the contrast AA on every ground."""
    return max((_WHITE, _BLACK), key=lambda text: contrast(text, ground))


def readable_on(grounds: tuple[str, ...], colour: str) -> str:
    """The colour itself, or the nearest darker or lighter one that can be read on all grounds."""
    goal = text_on(grounds[0])
    mixed = (_mixed(colour, goal, step / _STEPS) for step in range(_STEPS + 1))
    return next(each for each in mixed if all(contrast(each, on) >= AA for on in grounds))


def _mixed(colour: str, goal: str, share: float) -> str:
    pairs = zip(_channels(colour), _channels(goal), strict=True)
    return "#" + "".join(f"{round(start + (end - start) * share):02x}" for start, end in pairs)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(channel / 255) for channel in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(share: float) -> float:
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
