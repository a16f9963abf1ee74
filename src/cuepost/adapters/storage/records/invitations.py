"""Invitations to become a member of an account."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.records import paging
from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.access import Role
from cuepost.domain.invitation import Invitation
from cuepost.ports.records import Page

_FROM = """
    SELECT account_id, id, digest, role, email, created_at, expires_at FROM invitations
    """
_FOUND = Sql(f"{_FROM} WHERE digest = :digest")
_ONE = Sql(f"{_FROM} WHERE account_id = :account_id AND id = :invitation_id")
_PAGE = paging.pages(f"{_FROM} WHERE account_id = :account_id AND expires_at > :now")
_COUNT = Sql(
    """
    SELECT count(*) AS count FROM invitations
    WHERE account_id = :account_id AND expires_at > :now
    """
)
_TAKE = Sql("DELETE FROM invitations WHERE account_id = :account_id AND id = :invitation_id")
_END_OF_EMAIL = Sql("DELETE FROM invitations WHERE account_id = :account_id AND email = :email")


class InvitationRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def add(self, invitation: Invitation) -> None:
        await self._session.insert(
            "invitations",
            [
                {
                    "account_id": invitation.account_id,
                    "id": invitation.id,
                    "digest": invitation.digest,
                    "role": invitation.role,
                    "email": invitation.email,
                    "created_at": invitation.created_at,
                    "expires_at": invitation.expires_at,
                }
            ],
        )

    async def find(self, digest: bytes) -> Invitation | None:
        return await self._found(_FOUND, digest=digest)

    async def get(self, account_id: UUID, invitation_id: UUID) -> Invitation | None:
        return await self._found(_ONE, account_id=account_id, invitation_id=invitation_id)

    async def page(self, account_id: UUID, page: Page, now: datetime) -> list[Invitation]:
        rows = await self._session.offloaded.fetch(
            _PAGE, account_id=account_id, now=now, **paging.bounds(page)
        )
        return [_invitation(row) for row in rows]

    async def count(self, account_id: UUID, now: datetime) -> int:
        [(count,)] = await self._session.fetch(_COUNT, account_id=account_id, now=now)
        return int(count)

    async def take(self, account_id: UUID, invitation_id: UUID) -> bool:
        taken = await self._session.execute(
            _TAKE, account_id=account_id, invitation_id=invitation_id
        )
        return taken > 0

    async def end_of_email(self, account_id: UUID, email: str) -> None:
        await self._session.execute(_END_OF_EMAIL, account_id=account_id, email=email)

    async def _found(self, statement: Sql, **values: Any) -> Invitation | None:
        rows = await self._session.fetch(statement, **values)
        return _invitation(rows[0]) if rows else None


def _invitation(row: Sequence[Any]) -> Invitation:
    account_id, invitation_id, digest, role, *others = row
    return Invitation(account_id, invitation_id, bytes(digest), Role(role), *others)
