"""Invitations to become a member of an account."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.records import paging
from cuepost.adapters.storage.session import Records
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.access import AccountState, Role
from cuepost.domain.invitation import Invitation, InvitationMail
from cuepost.ports.records import Page

_FROM = """
    SELECT account_id, id, digest, role, email, created_at, expires_at, EXISTS (
        SELECT 1 FROM invitation_mails AS mail
        WHERE mail.account_id = invitations.account_id AND mail.id = invitations.id
    ) AS is_queued
    FROM invitations
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
_DROP_MAIL = Sql(
    "DELETE FROM invitation_mails WHERE account_id = :account_id AND id = :invitation_id"
)
_OF_EMAIL = "invitations WHERE account_id = :account_id AND email = :email"
_END_OF_EMAIL = (
    Sql(
        f"""
        DELETE FROM invitation_mails
        WHERE account_id = :account_id AND id IN (SELECT id FROM {_OF_EMAIL})
        """
    ),
    Sql(f"DELETE FROM {_OF_EMAIL}"),
)
_MAIL_KEY = ("account_id", "id")
_MAIL = ", ".join(field.name for field in fields(InvitationMail))
# The copy of an account that is moving sends nothing.
_DUE = f"""
    SELECT {_MAIL} FROM invitation_mails
    WHERE due_at <= :now AND EXISTS (
        SELECT 1 FROM accounts
        WHERE accounts.id = invitation_mails.account_id AND accounts.state = '{AccountState.LIVE}'
    )
    """
_ANY_DUE = Sql(f"{_DUE} LIMIT 1")
_SOME_DUE = Sql(f"{_DUE} ORDER BY due_at LIMIT :most FOR UPDATE SKIP LOCKED")


class InvitationRecords(Records):
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
        which = {"account_id": account_id, "invitation_id": invitation_id}
        await self._session.execute(_DROP_MAIL, **which)
        return await self._session.execute(_TAKE, **which) > 0

    async def end_of_email(self, account_id: UUID, email: str) -> None:
        for statement in _END_OF_EMAIL:
            await self._session.execute(statement, account_id=account_id, email=email)

    async def add_mail(self, mail: InvitationMail) -> None:
        await self._session.insert("invitation_mails", [asdict(mail)])

    async def has_due_mails(self, now: datetime) -> bool:
        return bool(await self._session.fetch(_ANY_DUE, now=now))

    async def due_mails(self, now: datetime, limit: int) -> list[InvitationMail]:
        rows = await self._session.fetch(_SOME_DUE, now=now, most=limit)
        return [
            InvitationMail(account_id, invitation_id, bytes(sealed), *others)
            for account_id, invitation_id, sealed, *others in rows
        ]

    async def postpone_mail(self, mail: InvitationMail) -> None:
        row = asdict(mail)
        changed = {name: row[name] for name in (*_MAIL_KEY, "due_at", "attempts_made")}
        await self._session.update("invitation_mails", _MAIL_KEY, [changed])

    async def drop_mail(self, account_id: UUID, invitation_id: UUID) -> None:
        await self._session.execute(_DROP_MAIL, account_id=account_id, invitation_id=invitation_id)

    async def _found(self, statement: Sql, **values: Any) -> Invitation | None:
        rows = await self._session.fetch(statement, **values)
        return _invitation(rows[0]) if rows else None


def _invitation(row: Sequence[Any]) -> Invitation:
    account_id, invitation_id, digest, role, email, created_at, expires_at, is_queued = row
    return Invitation(
        account_id,
        invitation_id,
        bytes(digest),
        Role(role),
        email,
        created_at,
        expires_at,
        bool(is_queued),
    )
