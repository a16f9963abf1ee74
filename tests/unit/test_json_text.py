"""JSON as highlighted HTML: the tokens of the original, escaped, with other white space."""

import json
from html import unescape

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cuepost.interfaces.web.json_text import DEEPEST, highlighted

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_keys_texts_numbers_and_words_are_marked_and_indented() -> None:
    assert highlighted(b'{"a":[1,-2.50e3,true,null,"x<y"],"b":{},"c":[]}') == (
        '{\n  <span class="json-key">&#34;a&#34;</span>: [\n'
        '    <span class="json-number">1</span>,\n    <span class="json-number">-2.50e3</span>,\n'
        '    <span class="json-word">true</span>,\n    <span class="json-word">null</span>,\n'
        '    <span class="json-text">&#34;x&lt;y&#34;</span>\n  ],\n'
        '  <span class="json-key">&#34;b&#34;</span>: {},\n'
        '  <span class="json-key">&#34;c&#34;</span>: []\n}'
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"<script>", b"12", b'"text"', b"{", b"\xff", b'{"a":1} trailing', b"[1,]", b"[NaN]"],
)
def test_anything_but_an_object_or_a_list_is_left_alone(content: bytes) -> None:
    assert highlighted(content) is None


def test_what_is_nested_too_deeply_is_left_alone() -> None:
    assert highlighted(b"[" * DEEPEST + b"]" * DEEPEST) is not None
    assert highlighted(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1)) is None
    assert highlighted(b"[" * 100_000 + b"]" * 100_000) is None


@given(st.lists(VALUES) | st.dictionaries(st.text(), VALUES))
def test_the_values_stay_the_same_and_no_markup_comes_through(value: object) -> None:
    written = json.dumps(value)
    shown = highlighted(written)
    assume(shown is not None)
    plain = str(shown)
    for kind in ("key", "text", "number", "word"):
        plain = plain.replace(f'<span class="json-{kind}">', "")
    plain = plain.replace("</span>", "")
    assert "<" not in plain
    assert json.loads(unescape(plain)) == value


def test_control_characters_do_not_reach_the_page() -> None:
    shown = highlighted('["\u202e\u0085"]')
    assert shown is not None
    assert "\u202e" not in shown
    assert "\u0085" not in shown
