"""Whom an id token names: the person at the provider, the account, and the role in it."""

from collections.abc import Mapping
from dataclasses import dataclass

from cuepost.domain.access import Role
from cuepost.domain.errors import Forbidden, Invalid
from cuepost.domain.id_token import Claims
from cuepost.domain.person import checked_email

NO_ACCOUNT = "Your sign-in names no account of this service. Ask the operator to assign you one."
TWO_ACCOUNTS = "Your sign-in names several accounts of this service, and it must name one."
NO_ROLE = "Your sign-in gives you no role in this account. Ask its operator for one."


class IdentityRefused(Forbidden):
    """The provider has signed you in, but you may not use this service."""

    code = "identity_refused"


@dataclass(frozen=True, slots=True)
class IdentityRules:
    """Without `role_claim`, owners change the roles, and a new member has the default role.

    Without `default_role`, a person to whom the claim gives no role is refused.
    """

    account_claim: str
    role_claim: str
    roles: Mapping[str, Role]
    default_role: Role | None


@dataclass(frozen=True, slots=True)
class Identity:
    """`role` is None if the provider does not decide it, and `new_role` is that of a new member.

    `email` is None unless the provider has verified it.
    """

    issuer: str
    subject: str
    account: str
    role: Role | None
    new_role: Role
    email: str | None = None

    def __repr__(self) -> str:
        return f"Identity({self.issuer})"


def identity_of(claims: Claims, rules: IdentityRules) -> Identity:
    """Raises IdentityRefused; the claims must have been verified."""
    accounts = _texts(claims, rules.account_claim)
    if len(set(accounts)) != 1:
        raise IdentityRefused(TWO_ACCOUNTS if accounts else NO_ACCOUNT)
    role = _role(claims, rules) if rules.role_claim else None
    new_role = role or rules.default_role
    if new_role is None:
        raise IdentityRefused(NO_ROLE)
    return Identity(
        str(claims["iss"]), str(claims["sub"]), accounts[0], role, new_role, _email(claims)
    )


def _role(claims: Claims, rules: IdentityRules) -> Role | None:
    """The greatest role that one of the values gives."""
    given = [rules.roles[text] for text in _texts(claims, rules.role_claim) if text in rules.roles]
    return min(given, key=list(Role).index, default=rules.default_role)


def _email(claims: Claims) -> str | None:
    """In the form in which e-mail addresses are stored."""
    email = claims.get("email")
    if claims.get("email_verified") is not True or not isinstance(email, str):
        return None
    try:
        return checked_email(email)
    except Invalid:
        return None


def _texts(claims: Claims, name: str) -> list[str]:
    """The texts of a claim that is one text or a list of them."""
    value = _value(claims, name)
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str) and each]


def _value(claims: Claims, name: str) -> object:
    """A claim of that name, or a member of an object: `realm_access.roles`."""
    if name in claims:
        return claims[name]
    first, _, rest = name.partition(".")
    inner = claims.get(first)
    return _value(inner, rest) if rest and isinstance(inner, dict) else None
