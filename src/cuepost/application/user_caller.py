"""A user as the caller of use cases."""

from cuepost.domain.access import Caller, Interface
from cuepost.domain.person import User


def caller_of(user: User, address: str | None, *, webhooks_enabled: bool) -> Caller:
    return Caller(
        interface=Interface.PAGES,
        actor=f"user:{user.id}",
        account_id=user.account_id,
        scopes=user.role.scopes,
        webhooks_enabled=webhooks_enabled,
        address=address,
        id=user.id,
        name=user.email or user.external_id,
        role=user.role,
    )
