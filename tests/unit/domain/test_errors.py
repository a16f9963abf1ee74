"""Refusals: stable codes, a sentence each, and a tree that the docstring draws rightly."""

import re
from collections import Counter

import pytest

from cuepost.domain import errors
from cuepost.domain.errors import (
    FieldError,
    IdempotencyKeyReused,
    Invalid,
    MissingScope,
    RateLimited,
    Refused,
)

ROW = re.compile(r"^((?:[│ ] {3})*)(?:[├└]── )?(\w+) *(\w*)")


def all_refusals() -> list[type[Refused]]:
    found = [each for each in vars(errors).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, Refused)]


def own_code(refusal: type[Refused]) -> str:
    return str(vars(refusal).get("code", ""))


def drawn_tree() -> dict[str, tuple[str, str]]:
    """Name -> (name of the parent, code), as drawn in the module's docstring."""
    tree: dict[str, tuple[str, str]] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").split("\n\n", 1)[1].splitlines():
        row = ROW.match(line)
        assert row, line
        depth = len(row[1]) // 4 + ("── " in line)
        path[depth:] = [row[2]]
        tree[row[2]] = (path[depth - 1] if depth else "Exception", row[3])
    return tree


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes() -> None:
    real = {each.__name__: (each.__bases__[0].__name__, own_code(each)) for each in all_refusals()}
    assert drawn_tree() == real


def test_every_code_is_used_once() -> None:
    codes = Counter(filter(None, map(own_code, all_refusals())))
    assert set(codes.values()) == {1}


@pytest.mark.parametrize("refusal", all_refusals(), ids=lambda each: each.__name__)
def test_every_refusal_without_a_code_is_only_a_kind_of_others(refusal: type[Refused]) -> None:
    if not own_code(refusal):
        assert refusal.__subclasses__()


@pytest.mark.parametrize("refusal", all_refusals(), ids=lambda each: each.__name__)
def test_every_refusal_says_a_whole_sentence_by_itself(refusal: type[Refused]) -> None:
    assert re.fullmatch(r"[A-Z].+\.", refusal.__doc__ or "")
    made = RateLimited(60, 3) if refusal is RateLimited else refusal()
    assert str(made) == refusal.__doc__
    assert made.details == {}


def test_a_refusal_may_say_something_closer_and_carry_details() -> None:
    refused = MissingScope("This key lacks the scope webhooks:read.", scope="webhooks:read")
    assert str(refused) == "This key lacks the scope webhooks:read."
    assert refused.details == {"scope": "webhooks:read"}
    assert refused.code == "missing_scope"


def test_an_invalid_request_lists_its_faults_and_says_the_first() -> None:
    first, second = FieldError("url", "a", "Fix the URL."), FieldError("events", "b", "Other.")
    refused = Invalid(first, second)
    assert (str(refused), refused.errors) == ("Fix the URL.", (first, second))
    assert str(Invalid(first, message="Two faults.")) == "Two faults."


def test_a_reused_idempotency_key_is_an_invalid_request_without_fields() -> None:
    refused = IdempotencyKeyReused()
    assert isinstance(refused, Invalid)
    assert refused.errors == ()


def test_a_limited_caller_is_told_how_long_to_wait() -> None:
    limited = RateLimited(60, 17)
    assert (limited.limit, limited.retry_after_seconds) == (60, 17)
