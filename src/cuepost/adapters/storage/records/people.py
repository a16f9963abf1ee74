"""Sessions and sign-in links of users, and secrets that will be shown once."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.adapters.storage.session import Records
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.person import Session, SignInLink
from cuepost.domain.secret_reveal import SecretReveal

EXPIRED_ROWS_AT_ONCE = 10

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

# A window that ends much later than one that begins now began before the clock was set back. One
# that ends a little later was begun by a process that read its clock a moment after this one.
_IS_OVER = "sign_in_attempts.ends_at <= :now OR sign_in_attempts.ends_at > :latest_end"
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


class SessionRecords(Records):
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


class SignInLinkRecords(Records):
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


class SignInAttemptRecords(Records):
    async def count(self, key: bytes, now: datetime, window: timedelta) -> int:
        await self._delete_some(now)
        end = now + window
        [(count,)] = await self._session.fetch(
            _COUNT, key=key, now=now, end=end, latest_end=end + window
        )
        return int(count)

    async def give_back(self, key: bytes, now: datetime) -> None:
        await self._session.execute(_GIVE_BACK, key=key, now=now)

    async def _delete_some(self, now: datetime) -> None:
        """Each count also deletes a few rows whose window has ended, so that none accumulate."""
        old = await self._session.fetch(_ENDED_WINDOWS, now=now, most=EXPIRED_ROWS_AT_ONCE)
        await self._session.delete("sign_in_attempts", ("key",), [{"key": key} for (key,) in old])


class SecretRevealRecords(Records):
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
