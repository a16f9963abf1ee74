"""Portal links, and the sessions that they opened."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.session import Records
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.portal import ColourScheme, PortalLink, PortalTheme

_FROM = """
    SELECT account_id, id, user_id, digest, created_at, expires_at, ends_at, used_at, return_url,
        accent, logo_url, colour_scheme
    FROM portal_links
    """
_FOUND = Sql(f"{_FROM} WHERE digest = :digest")
_ONE = Sql(f"{_FROM} WHERE account_id = :account_id AND id = :id")
_TAKE = Sql(
    """
    UPDATE portal_links SET used_at = :used_at, ends_at = :ends_at
    WHERE account_id = :account_id AND id = :id AND used_at IS NULL
    """
)
# A session has the id of its link.
_ENDING = ("sessions", "portal_links")
_END = tuple(
    Sql(f"DELETE FROM {table} WHERE account_id = :account_id AND id = :id") for table in _ENDING
)
_END_OF_USER = tuple(
    Sql(
        f"""
        DELETE FROM {table} WHERE account_id = :account_id AND id IN (
            SELECT id FROM portal_links WHERE account_id = :account_id AND user_id = :user_id
        )
        """
    )
    for table in _ENDING
)
_END_ALL = tuple(
    Sql(
        f"""
        DELETE FROM {table} WHERE account_id = :account_id
            AND id IN (SELECT id FROM portal_links WHERE account_id = :account_id)
        """
    )
    for table in _ENDING
)


class PortalLinkRecords(Records):
    async def add(self, link: PortalLink) -> None:
        await self._session.insert(
            "portal_links",
            [
                {
                    "account_id": link.account_id,
                    "id": link.id,
                    "user_id": link.user_id,
                    "digest": link.digest,
                    "created_at": link.created_at,
                    "expires_at": link.expires_at,
                    "ends_at": link.ends_at,
                    "used_at": link.used_at,
                    "return_url": link.return_url,
                    "accent": link.theme.accent,
                    "logo_url": link.theme.logo_url,
                    "colour_scheme": link.theme.scheme,
                }
            ],
        )

    async def find(self, digest: bytes) -> PortalLink | None:
        return await self._found(_FOUND, digest=digest)

    async def get(self, account_id: UUID, link_id: UUID) -> PortalLink | None:
        return await self._found(_ONE, account_id=account_id, id=link_id)

    async def take(self, account_id: UUID, link_id: UUID, now: datetime, ends_at: datetime) -> bool:
        taken = await self._session.execute(
            _TAKE, account_id=account_id, id=link_id, used_at=now, ends_at=ends_at
        )
        return taken > 0

    async def end(self, account_id: UUID, link_id: UUID) -> None:
        for statement in _END:
            await self._session.execute(statement, account_id=account_id, id=link_id)

    async def end_all(self, account_id: UUID, user_id: UUID | None) -> None:
        if user_id is None:
            for statement in _END_ALL:
                await self._session.execute(statement, account_id=account_id)
            return
        for statement in _END_OF_USER:
            await self._session.execute(statement, account_id=account_id, user_id=user_id)

    async def _found(self, statement: Sql, **values: Any) -> PortalLink | None:
        rows = await self._session.fetch(statement, **values)
        return _link(rows[0]) if rows else None


def _link(row: Sequence[Any]) -> PortalLink:
    *own, accent, logo_url, scheme = row
    theme = PortalTheme(accent, logo_url, ColourScheme(scheme))
    return replace(PortalLink(*own), theme=theme)
