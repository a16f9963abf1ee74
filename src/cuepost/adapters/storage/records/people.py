"""Users, their sessions and sign-in links, and secrets that wait to be shown once."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.session import Session as StoreSession
from cuepost.adapters.storage.session import first, upsert
from cuepost.adapters.storage.tables import (
    secret_reveals,
    sessions,
    sign_in_attempts,
    sign_in_links,
    users,
)
from cuepost.domain.person import Session, SignInLink, User
from cuepost.domain.secret_reveal import SecretReveal

FORGOTTEN_AT_ONCE = 10


class UserRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def add(self, user: User) -> None:
        await self._session.insert(
            users,
            [
                {
                    "account_id": user.account_id,
                    "id": user.id,
                    "email": user.email,
                    "password_hash": user.password_hash,
                    "created_at": user.created_at,
                }
            ],
        )

    async def get(self, account_id: UUID, user_id: UUID) -> User | None:
        return await self._one(users.c.account_id == account_id, users.c.id == user_id)

    async def by_email(self, email: str) -> User | None:
        return await self._one(users.c.email == email)

    async def all(self, account_id: UUID) -> list[User]:
        rows = await self._session.all(
            sa.select(users).where(users.c.account_id == account_id).order_by(users.c.id)
        )
        return [_user(row) for row in rows]

    async def save(self, user: User) -> None:
        await self._session.run(
            sa.update(users)
            .where(users.c.account_id == user.account_id, users.c.id == user.id)
            .values(email=user.email, password_hash=user.password_hash)
        )

    async def _one(self, *conditions: sa.ColumnElement[bool]) -> User | None:
        row = await first(self._session, sa.select(users).where(*conditions))
        return _user(row) if row else None


class SessionRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def add(self, session: Session) -> None:
        await self._session.insert(
            sessions,
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
        row = await first(self._session, sa.select(sessions).where(sessions.c.digest == digest))
        if row is None:
            return None
        return Session(
            row.account_id,
            row.id,
            row.user_id,
            row.digest,
            row.created_at,
            row.expires_at,
            row.by_link,
        )

    async def end(self, account_id: UUID, session_id: UUID) -> None:
        await self._session.run(
            sa.delete(sessions).where(
                sessions.c.account_id == account_id, sessions.c.id == session_id
            )
        )

    async def end_of_user(self, account_id: UUID, user_id: UUID) -> None:
        await self._session.run(
            sa.delete(sessions).where(
                sessions.c.account_id == account_id, sessions.c.user_id == user_id
            )
        )


class SignInLinkRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def add(self, link: SignInLink) -> None:
        await self._session.insert(
            sign_in_links,
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
        row = await first(
            self._session, sa.select(sign_in_links).where(sign_in_links.c.digest == digest)
        )
        if row is None:
            return None
        return SignInLink(row.account_id, row.id, row.user_id, row.digest, row.expires_at)

    async def take(self, account_id: UUID, link_id: UUID) -> bool:
        taken = await self._session.run(
            sa.delete(sign_in_links).where(
                sign_in_links.c.account_id == account_id, sign_in_links.c.id == link_id
            )
        )
        return taken > 0

    async def end_of_user(self, account_id: UUID, user_id: UUID) -> None:
        await self._session.run(
            sa.delete(sign_in_links).where(
                sign_in_links.c.account_id == account_id, sign_in_links.c.user_id == user_id
            )
        )


class SignInAttemptRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def count(self, key: bytes, now: datetime, window: timedelta) -> int:
        await self._forget_some(now)
        # A window that ends later than one that begins now was begun before the clock was set back.
        is_over = sa.or_(
            sign_in_attempts.c.ends_at <= now, sign_in_attempts.c.ends_at > now + window
        )
        one_more = sa.case((is_over, 1), else_=sign_in_attempts.c.count + 1)
        ends_at = sa.case((is_over, now + window), else_=sign_in_attempts.c.ends_at)
        [row] = await self._session.all(
            upsert(self._session, sign_in_attempts)
            .values(key=key, count=1, ends_at=now + window)
            .on_conflict_do_update(
                index_elements=["key"], set_={"count": one_more, "ends_at": ends_at}
            )
            .returning(sign_in_attempts.c.count)
        )
        return int(row[0])

    async def give_back(self, key: bytes, now: datetime) -> None:
        await self._session.run(
            sa.update(sign_in_attempts)
            .where(
                sign_in_attempts.c.key == key,
                sign_in_attempts.c.ends_at > now,
                sign_in_attempts.c.count > 0,
            )
            .values(count=sign_in_attempts.c.count - 1)
        )

    async def _forget_some(self, now: datetime) -> None:
        """Each count clears away a few of those whose window has ended, so that none pile up."""
        old = (
            sa.select(sign_in_attempts.c.key)
            .where(sign_in_attempts.c.ends_at <= now)
            .order_by(sign_in_attempts.c.ends_at)
            .limit(FORGOTTEN_AT_ONCE)
            .with_for_update(skip_locked=True)
        )
        keys = [row.key for row in await self._session.all(old)]
        if keys:
            await self._session.run(
                sa.delete(sign_in_attempts).where(sign_in_attempts.c.key.in_(keys))
            )


class SecretRevealRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def add(self, reveal: SecretReveal) -> None:
        await self._session.insert(
            secret_reveals,
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
        row = await first(
            self._session,
            sa.select(secret_reveals).where(
                secret_reveals.c.account_id == account_id,
                secret_reveals.c.digest == digest,
                secret_reveals.c.expires_at > now,
            ),
        )
        if row is None:
            return None
        return SecretReveal(
            row.account_id, row.id, row.webhook_id, row.digest, row.sealed, row.expires_at
        )

    async def take(self, account_id: UUID, reveal_id: UUID) -> bool:
        taken = await self._session.run(
            sa.delete(secret_reveals).where(
                secret_reveals.c.account_id == account_id, secret_reveals.c.id == reveal_id
            )
        )
        return taken > 0


def _user(row: sa.Row[Any]) -> User:
    return User(row.account_id, row.id, row.created_at, row.email, row.password_hash)
