"""How an operator names an account."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.domain.account_reference import (
    account_reference,
    account_references,
    checked_external_id,
    search_key,
)
from cuepost.domain.errors import FieldError, Invalid, NotFound

ACCOUNT_ID = UUID("0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90")


@pytest.mark.parametrize("text", [str(ACCOUNT_ID), str(ACCOUNT_ID).upper()])
def test_an_id_names_an_account(text: str) -> None:
    assert account_reference(text) == ACCOUNT_ID


@pytest.mark.parametrize(
    "external_id", ["42", "cust_42", "a@b.example", "eu:1~x-Y", "x" * 200, str(ACCOUNT_ID)]
)
def test_an_external_id_names_an_account_behind_its_prefix(external_id: str) -> None:
    assert account_reference(f"external:{external_id}") == external_id
    assert checked_external_id(external_id) == external_id


@pytest.mark.parametrize(
    "external_id", ["", "x" * 201, "a b", "a/b", "a%2Fb", "a\n", "ä", "a?b", "a#b", "a+b"]
)
def test_other_texts_are_no_external_ids(external_id: str) -> None:
    with pytest.raises(NotFound):
        account_reference(f"external:{external_id}")
    with pytest.raises(Invalid) as refused:
        checked_external_id(external_id)
    [error] = refused.value.errors
    assert (error.field, error.code) == ("externalId", "invalid_external_id")
    assert isinstance(error, FieldError)


@pytest.mark.parametrize("text", ["", "42", "cust_42", "External:42", ACCOUNT_ID.hex, "external"])
def test_without_the_prefix_only_an_id_names_an_account(text: str) -> None:
    with pytest.raises(NotFound):
        account_reference(text)


@given(st.text())
def test_any_text_names_an_account_or_none(text: str) -> None:
    try:
        account_reference(text)
    except NotFound:
        assert True


def test_a_name_is_found_in_capital_and_in_small_letters() -> None:
    assert search_key("STRASSE") == search_key("Straße") == "strasse"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("acme", ["acme"]),
        ("external:acme", ["acme"]),
        (str(ACCOUNT_ID), [ACCOUNT_ID, str(ACCOUNT_ID)]),
        (f"external:{ACCOUNT_ID}", [str(ACCOUNT_ID)]),
        ("a b", []),
        ("external:", []),
    ],
)
def test_a_claim_may_name_an_account_without_a_prefix(text: str, meant: list[UUID | str]) -> None:
    assert account_references(text) == meant
