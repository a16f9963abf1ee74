"""Every rule of the specification has a test, or is open by name; what is open only shrinks."""

import pytest

from tests.spec.manifest import (
    LATER_ISSUES,
    MANIFEST,
    OPEN_RULES,
    SECTIONS,
    Rule,
    complaints,
    existing_tests,
    named_tests,
    read_rules,
)


def test_every_rule_has_a_test_or_is_open_and_the_open_ones_only_shrink() -> None:
    rules = read_rules(MANIFEST.read_text(encoding="utf-8"))
    allowed_open = OPEN_RULES.read_text(encoding="utf-8").split()
    assert complaints(rules, allowed_open, existing_tests()) == []


GOOD = [
    Rule(f"{section}-rule", section, "A sentence.", tests=("tests/test_a.py::test_it",))
    for section in SECTIONS
]
EXISTING = frozenset({"tests/test_a.py::test_it"})
ENGINE = LATER_ISSUES[0]


def test_a_good_manifest_has_no_complaints() -> None:
    opened = Rule("3-open", "3", "A sentence.", open=ENGINE)
    assert complaints([*GOOD, opened], ["3-open"], EXISTING) == []


@pytest.mark.parametrize(
    ("rule", "allowed", "complaint"),
    [
        (
            Rule("3-bare", "3", "A sentence."),
            [],
            "3-bare has to have tests or to be open, and not both",
        ),
        (
            Rule("3-both", "3", "A sentence.", ("tests/test_a.py::test_it",), ENGINE),
            ["3-both"],
            "3-both has to have tests or to be open, and not both",
        ),
        (
            Rule("3-lost", "3", "A sentence.", ("tests/test_a.py::test_gone",)),
            [],
            "3-lost names tests/test_a.py::test_gone, which does not exist",
        ),
        (
            Rule("3-twice", "3", "A sentence.", ("tests/test_a.py::test_it",) * 2),
            [],
            "3-twice names tests/test_a.py::test_it twice",
        ),
        (Rule("3-rule", "3", "A sentence.", open=ENGINE), ["3-rule"], "3-rule stands twice"),
        (Rule("3-new", "3", "A sentence.", open=ENGINE), [], "3-new may not be open"),
        (
            Rule("3-done", "3", "A sentence.", ("tests/test_a.py::test_it",)),
            ["3-done"],
            "3-done is not open any more",
        ),
        (
            Rule("3-some-day", "3", "A sentence.", open="Some day"),
            ["3-some-day"],
            "3-some-day waits for an issue that does not exist",
        ),
        (
            Rule("3-mute", "3", "Words", ("tests/test_a.py::test_it",)),
            [],
            "3-mute says no sentence",
        ),
        (
            Rule("10-far", "10", "A sentence.", ("tests/test_a.py::test_it",)),
            [],
            "10-far is in no section",
        ),
        (
            Rule("5-misplaced", "3", "A sentence.", ("tests/test_a.py::test_it",)),
            [],
            "5-misplaced is not named after its section",
        ),
    ],
)
def test_each_fault_of_a_manifest_is_named(rule: Rule, allowed: list[str], complaint: str) -> None:
    assert complaints([*GOOD, rule], allowed, EXISTING) == [complaint]


def test_a_section_without_a_rule_and_a_doubled_permission_are_named() -> None:
    opened = Rule("3-open", "3", "A sentence.", open=ENGINE)
    rest = [rule for rule in GOOD if rule.section != "7"]
    assert complaints([*rest, opened], ["3-open", "3-open"], EXISTING) == [
        "3-open is allowed twice",
        "section 7 has no rule",
    ]


def test_tests_are_found_in_functions_and_classes_and_nowhere_else() -> None:
    source = """
import pytest

@pytest.mark.parametrize("x", [1])
def test_plain(x): ...
async def test_waiting(): ...
def helper(): ...
class TestGroup:
    def test_inside(self): ...
    def helper(self): ...
class Other:
    def test_not_collected(self): ...
def outer():
    def test_hidden(): ...
"""
    assert list(named_tests(source)) == ["test_plain", "test_waiting", "TestGroup::test_inside"]
