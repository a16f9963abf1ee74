"""Users, their sessions and sign-in links, and secrets that will be shown once."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.records import paging
from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.access import Role
from cuepost.domain.person import Session, SignInLink, User
from cuepost.domain.secret_reveal import SecretReveal
from cuepost.ports.records import Page

EXPIRED_ROWS_AT_ONCE = 10

_FROM_USERS = """
    SELECT account_id, id, created_at, email, password_hash, role, wants_alerts, external_id
    FROM users
    """
_USER = Sql(f"{_FROM_USERS} WHERE account_id = :account_id AND id = :user_id")
_USER_BY_EMAIL = Sql(f"{_FROM_USERS} WHERE email = :email")
_USER_BY_EXTERNAL_ID = Sql(
    f"{_FROM_USERS} WHERE account_id = :account_id AND external_id = :external_id"
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

_FIND_SESSION = Sql(
    """
    SELECT sessions.account_id, sessions.id, sessions.user_id, sessions.digest,
        sessions.created_at, sessions.expires_at, sessions.by_link,
        portal_links.used_at
    FROM sessions LEFT JOIN portal_links
        ON portal_links.account_id = sessions.account_id AND portal_links.id = sessions.id
    WHERE sessions.digest = :digest
    """
)
_END_SESSION = Sql("DELETE FROM sessions WHERE account_id = :account_id AND id = :session_id")
_END_SESSIONS = Sql("DELETE FROM sessions WHERE account_id = :account_id AND user_id = :user_id")

_FIND_LINK = Sql(
    "SELECT account_id, id, user_id, digest, expires_at FROM sign_in_links WHERE digest = :digest"
)
_TAKE_LINK = Sql("DELETE FROM sign_in_links WHERE account_id = :account_id AND id = :link_id")
_END_LINKS = Sql("DELETE FROM sign_in_links WHERE account_id = :account_id AND user_id = :user_id")

# A window that ends later than one that begins now began before the clock was set back.
_IS_OVER = "sign_in_attempts.ends_at <= :now OR sign_in_attempts.ends_at > :end"
_COUNT = Sql(
    f"""
    INSERT INTO sign_in_attempts ("key", count, ends_at) VALUES (:key, 1, :end)
    ON CONFLICT ("key") DO UPDATE
    SET count = CASE WHEN {_IS_OVER} THEN 1 ELSE sign_in_attempts.count + 1 END,
        ends_at = CASE WHEN {_IS_OVER} THEN excluded.ends_at ELSE sign_in_attempts.ends_at END
    RETURNING count
    """
)
_GIVE_BACK = Sql(
    """
    UPDATE sign_in_attempts SET count = count - 1
    WHERE "key" = :key AND ends_at > :now AND count > 0
    """
)
_ENDED_WINDOWS = Sql(
    """
    SELECT "key" FROM sign_in_attempts WHERE ends_at <= :now
    ORDER BY ends_at LIMIT :most FOR UPDATE SKIP LOCKED
    """
)

_FIND_REVEAL = Sql(
    """
    SELECT account_id, id, webhook_id, digest, sealed, expires_at FROM secret_reveals
    WHERE account_id = :account_id AND digest = :digest AND expires_at > :now
    """
)
_TAKE_REVEAL = Sql("DELETE FROM secret_reveals WHERE account_id = :account_id AND id = :reveal_id")


class UserRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

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
                }
            ],
        )

    async def get(self, account_id: UUID, user_id: UUID) -> User | None:
        return await self._one(_USER, account_id=account_id, user_id=user_id)

    async def by_email(self, email: str) -> User | None:
        return await self._one(_USER_BY_EMAIL, email=email)

    async def by_external_id(self, account_id: UUID, external_id: str) -> User | None:
        return await self._one(_USER_BY_EXTERNAL_ID, account_id=account_id, external_id=external_id)

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

    async def _one(self, statement: Sql, **values: Any) -> User | None:
        rows = await self._session.fetch(statement, **values)
        return _user(rows[0]) if rows else None


def _user(row: Sequence[Any]) -> User:
    account_id, user_id, created_at, email, password_hash, role, *others = row
    return User(account_id, user_id, created_at, email, password_hash, Role(role), *others)


class SessionRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def add(self, session: Session) -> None:
        await self._session.insert(
            "sessions",
            [
                {
                    "account_id": session.account_id,
                    "id": session.id,
                    "user_id": session.user_id,
                    "digest": session.digest,
                    "created_at": session.created_at,
                    "expires_at": session.expires_at,
                    "by_link": session.by_link,
                }
            ],
        )

    async def find(self, digest: bytes) -> Session | None:
        rows = await self._session.fetch(_FIND_SESSION, digest=digest)
        if not rows:
            return None
        *own, portal_used_at = rows[0]
        return replace(Session(*own), by_portal=portal_used_at is not None)

    async def end(self, account_id: UUID, session_id: UUID) -> None:
        await self._session.execute(_END_SESSION, account_id=account_id, session_id=session_id)

    async def end_of_user(self, account_id: UUID, user_id: UUID) -> None:
        await self._session.execute(_END_SESSIONS, account_id=account_id, user_id=user_id)


class SignInLinkRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def add(self, link: SignInLink) -> None:
        await self._session.insert(
            "sign_in_links",
            [
                {
                    "account_id": link.account_id,
                    "id": link.id,
                    "user_id": link.user_id,
                    "digest": link.digest,
                    "expires_at": link.expires_at,
                }
            ],
        )

    async def find(self, digest: bytes) -> SignInLink | None:
        rows = await self._session.fetch(_FIND_LINK, digest=digest)
        return SignInLink(*rows[0]) if rows else None

    async def take(self, account_id: UUID, link_id: UUID) -> bool:
        return await self._session.execute(_TAKE_LINK, account_id=account_id, link_id=link_id) > 0

    async def end_of_user(self, account_id: UUID, user_id: UUID) -> None:
        await self._session.execute(_END_LINKS, account_id=account_id, user_id=user_id)


class SignInAttemptRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def count(self, key: bytes, now: datetime, window: timedelta) -> int:
        await self._delete_some(now)
        [(count,)] = await self._session.fetch(_COUNT, key=key, now=now, end=now + window)
        return int(count)

    async def give_back(self, key: bytes, now: datetime) -> None:
        await self._session.execute(_GIVE_BACK, key=key, now=now)

    async def _delete_some(self, now: datetime) -> None:
        """Each count also deletes a few rows whose window has ended, so that none accumulate."""
        old = await self._session.fetch(_ENDED_WINDOWS, now=now, most=EXPIRED_ROWS_AT_ONCE)
        await self._session.delete("sign_in_attempts", ("key",), [{"key": key} for (key,) in old])


class SecretRevealRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def add(self, reveal: SecretReveal) -> None:
        await self._session.insert(
            "secret_reveals",
            [
                {
                    "account_id": reveal.account_id,
                    "id": reveal.id,
                    "webhook_id": reveal.webhook_id,
                    "digest": reveal.digest,
                    "sealed": reveal.sealed,
                    "expires_at": reveal.expires_at,
                }
            ],
        )

    async def find(self, account_id: UUID, digest: bytes, now: datetime) -> SecretReveal | None:
        rows = await self._session.fetch(
            _FIND_REVEAL, account_id=account_id, digest=digest, now=now
        )
        return SecretReveal(*rows[0]) if rows else None

    async def take(self, account_id: UUID, reveal_id: UUID) -> bool:
        taken = await self._session.execute(
            _TAKE_REVEAL, account_id=account_id, reveal_id=reveal_id
        )
        return taken > 0
