"""Users of the pages."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.records import paging
from cuepost.adapters.storage.session import Records
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.access import Role
from cuepost.domain.person import User
from cuepost.ports.records import Page

_FROM_USERS = """
    SELECT account_id, id, created_at, email, password_hash, role, wants_alerts, external_id,
        oidc_issuer, oidc_subject
    FROM users
    """
_USER = Sql(f"{_FROM_USERS} WHERE account_id = :account_id AND id = :user_id")
_USER_BY_EMAIL = Sql(f"{_FROM_USERS} WHERE email = :email")
_USER_BY_EXTERNAL_ID = Sql(
    f"{_FROM_USERS} WHERE account_id = :account_id AND external_id = :external_id"
)
_USER_BY_IDENTITY = Sql(
    f"{_FROM_USERS} WHERE account_id = :account_id AND oidc_issuer = :issuer "
    "AND oidc_subject = :subject"
)
_USERS = paging.pages(f"{_FROM_USERS} WHERE account_id = :account_id")
_OWNERS = Sql(f"{_FROM_USERS} WHERE account_id = :account_id AND role = :role ORDER BY id")
_SET_ROLE = Sql("UPDATE users SET role = :role WHERE account_id = :account_id AND id = :user_id")
_SET_EXTERNAL_ID = Sql(
    """
    UPDATE users SET external_id = :external_id
    WHERE account_id = :account_id AND id = :user_id
    """
)
_SET_ALERTS = Sql(
    "UPDATE users SET wants_alerts = :wanted WHERE account_id = :account_id AND id = :user_id"
)
_REMOVE_USER = Sql("DELETE FROM users WHERE account_id = :account_id AND id = :user_id")
_SAVE_CREDENTIALS = Sql(
    """
    UPDATE users SET email = :email, password_hash = :password_hash
    WHERE account_id = :account_id AND id = :user_id
    """
)
_SAVE_IDENTITY = Sql(
    """
    UPDATE users SET oidc_issuer = :issuer, oidc_subject = :subject
    WHERE account_id = :account_id AND id = :user_id
    """
)


class UserRecords(Records):
    async def add(self, user: User) -> None:
        await self._session.insert(
            "users",
            [
                {
                    "account_id": user.account_id,
                    "id": user.id,
                    "email": user.email,
                    "password_hash": user.password_hash,
                    "created_at": user.created_at,
                    "role": user.role,
                    "wants_alerts": user.wants_alerts,
                    "external_id": user.external_id,
                    "oidc_issuer": user.oidc_issuer,
                    "oidc_subject": user.oidc_subject,
                }
            ],
        )

    async def get(self, account_id: UUID, user_id: UUID) -> User | None:
        return await self._one(_USER, account_id=account_id, user_id=user_id)

    async def by_email(self, email: str) -> User | None:
        return await self._one(_USER_BY_EMAIL, email=email)

    async def by_external_id(self, account_id: UUID, external_id: str) -> User | None:
        return await self._one(_USER_BY_EXTERNAL_ID, account_id=account_id, external_id=external_id)

    async def by_identity(self, account_id: UUID, issuer: str, subject: str) -> User | None:
        return await self._one(
            _USER_BY_IDENTITY, account_id=account_id, issuer=issuer, subject=subject
        )

    async def page(self, account_id: UUID, page: Page) -> list[User]:
        rows = await self._session.offloaded.fetch(
            _USERS, account_id=account_id, **paging.bounds(page)
        )
        return [_user(row) for row in rows]

    async def owners(self, account_id: UUID) -> list[User]:
        rows = await self._session.offloaded.fetch(
            _OWNERS, account_id=account_id, role=Role.OWNER.value
        )
        return [_user(row) for row in rows]

    async def set_role(self, account_id: UUID, user_id: UUID, role: Role) -> None:
        await self._session.execute(
            _SET_ROLE, account_id=account_id, user_id=user_id, role=role.value
        )

    async def set_external_id(
        self, account_id: UUID, user_id: UUID, external_id: str | None
    ) -> None:
        await self._session.execute(
            _SET_EXTERNAL_ID, account_id=account_id, user_id=user_id, external_id=external_id
        )

    async def set_alerts(self, account_id: UUID, user_id: UUID, wanted: bool) -> None:
        await self._session.execute(
            _SET_ALERTS, account_id=account_id, user_id=user_id, wanted=wanted
        )

    async def remove(self, account_id: UUID, user_id: UUID) -> None:
        await self._session.execute(_REMOVE_USER, account_id=account_id, user_id=user_id)

    async def save_credentials(self, user: User) -> None:
        await self._session.execute(
            _SAVE_CREDENTIALS,
            account_id=user.account_id,
            user_id=user.id,
            email=user.email,
            password_hash=user.password_hash,
        )

    async def save_identity(self, user: User) -> None:
        await self._session.execute(
            _SAVE_IDENTITY,
            account_id=user.account_id,
            user_id=user.id,
            issuer=user.oidc_issuer,
            subject=user.oidc_subject,
        )

    async def _one(self, statement: Sql, **values: Any) -> User | None:
        rows = await self._session.fetch(statement, **values)
        return _user(rows[0]) if rows else None


def _user(row: Sequence[Any]) -> User:
    account_id, user_id, created_at, email, password_hash, role, *others = row
    return User(account_id, user_id, created_at, email, password_hash, Role(role), *others)
