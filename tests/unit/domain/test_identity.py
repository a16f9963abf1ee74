"""Which account and role the claims of a provider give."""

from dataclasses import replace
from typing import Any

import pytest

from cuepost.domain.access import Role
from cuepost.domain.identity import (
    NO_ACCOUNT,
    NO_ROLE,
    TWO_ACCOUNTS,
    Identity,
    IdentityRefused,
    IdentityRules,
    identity_of,
)

ISSUER = "https://id.example.com"
RULES = IdentityRules("org", "groups", {"admins": Role.OWNER, "staff": Role.VIEWER}, None)
CLAIMS = {"iss": ISSUER, "sub": "ada", "org": "acme", "groups": ["staff"]}


def found(rules: IdentityRules = RULES, **changed: Any) -> Identity:
    return identity_of(CLAIMS | changed, rules)


def refusal(rules: IdentityRules = RULES, **changed: Any) -> str:
    with pytest.raises(IdentityRefused) as caught:
        identity_of(CLAIMS | changed, rules)
    return str(caught.value)


def test_claims_name_the_person_the_account_and_the_role() -> None:
    assert found() == Identity(ISSUER, "ada", "acme", Role.VIEWER, Role.VIEWER)
    assert "ada" not in repr(found())


@pytest.mark.parametrize("org", ["acme", ["acme"], ["acme", "acme"], ["acme", 7, ""]])
def test_the_account_is_a_text_or_the_only_one_of_a_list(org: object) -> None:
    assert found(org=org).account == "acme"


@pytest.mark.parametrize("org", [None, "", [], 7, {"id": "acme"}])
def test_a_person_without_an_account_is_refused(org: object) -> None:
    assert refusal(org=org) == NO_ACCOUNT


def test_a_person_of_two_accounts_is_refused() -> None:
    assert refusal(org=["acme", "other"]) == TWO_ACCOUNTS


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        ("admins", Role.OWNER),
        (["staff", "admins", "all"], Role.OWNER),
        (["all", "staff"], Role.VIEWER),
    ],
)
def test_the_greatest_role_counts(groups: object, role: Role) -> None:
    assert found(groups=groups).role is role


@pytest.mark.parametrize("groups", [None, [], "all", ["owner"], 7])
def test_a_person_without_a_role_is_refused_or_has_the_default(groups: object) -> None:
    assert refusal(groups=groups) == NO_ROLE
    identity = found(replace(RULES, default_role=Role.VIEWER), groups=groups)
    assert (identity.role, identity.new_role) == (Role.VIEWER, Role.VIEWER)


def test_without_a_claim_for_roles_owners_decide_about_them() -> None:
    identity = found(IdentityRules("org", "", RULES.roles, Role.DEVELOPER), groups=["admins"])
    assert (identity.role, identity.new_role) == (None, Role.DEVELOPER)


def test_a_dot_leads_into_an_object_unless_a_claim_has_that_name() -> None:
    rules = replace(RULES, role_claim="realm.access.roles")
    assert found(rules, realm={"access": {"roles": ["admins"]}}).role is Role.OWNER
    assert found(rules, **{"realm.access.roles": "staff"}, realm=1).role is Role.VIEWER
    assert refusal(rules, realm={"access": "admins"}) == NO_ROLE
    assert refusal(rules, realm=["access"]) == NO_ROLE


@pytest.mark.parametrize(
    ("claims", "email"),
    [
        ({"email": "Ada@Example.com", "email_verified": True}, "ada@example.com"),
        ({"email": "ada@example.com"}, None),
        ({"email": "ada@example.com", "email_verified": False}, None),
        ({"email": "ada@example.com", "email_verified": "true"}, None),
        ({"email": "ada", "email_verified": True}, None),
        ({"email": 7, "email_verified": True}, None),
        ({"email_verified": True}, None),
    ],
)
def test_only_a_verified_email_counts(claims: dict[str, Any], email: str | None) -> None:
    assert found(**claims).email == email
