"""Colours of a theme: whatever a host gives can be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.domain.colour import AA, contrast, is_colour, readable_on, text_on

colours = st.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")
LIGHT, DARK = ("#f5f6fa", "#ffffff"), ("#1d222d", "#11141b")


def test_the_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == 21
    assert contrast("#ffffff", "#777777") == pytest.approx(4.48, abs=0.01)


@given(colours)
def test_text_on_any_colour_has_the_contrast_aa(colour: str) -> None:
    assert contrast(text_on(colour), colour) >= AA


@given(colours, st.sampled_from([LIGHT, DARK]))
def test_a_colour_becomes_readable_on_all_grounds(colour: str, grounds: tuple[str, ...]) -> None:
    made = readable_on(grounds, colour)
    assert all(contrast(made, ground) >= AA for ground in grounds)


def test_a_colour_that_is_readable_stays_as_it_is() -> None:
    assert readable_on(LIGHT, "#0b6e4f") == "#0b6e4f"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#0b6e4f", True),
        ("#0B6E4F", True),
        ("0b6e4f", False),
        ("#0b6e4f\n", False),
        ("#fff", False),
    ],
)
def test_a_colour_has_six_digits(text: str, expected: bool) -> None:
    assert is_colour(text) is expected
