"""The URL and the signing secrets of endpoints."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.endpoint import StoredSecret
from cuepost.ports.dispatch import Lane, Target

_TARGETS = Sql(
    """
    SELECT
        endpoints.number, endpoints.account_id, endpoints.id, endpoints.url,
        secrets.version, secrets.sealed, secrets.hint, secrets.created_at, secrets.expires_at
    FROM endpoints
    LEFT JOIN signing_secrets AS secrets
        ON secrets.account_id = endpoints.account_id AND secrets.webhook_id = endpoints.id
    WHERE endpoints.number IN :lanes AND endpoints.deleted_at IS NULL
    ORDER BY secrets.version DESC
    """
)


async def load_targets(
    session: StoreSession, lanes: Collection[Lane], now: datetime
) -> dict[Lane, Target]:
    """URL and live secrets by lane, without deleted endpoints."""
    found: dict[Lane, tuple[UUID, UUID, str]] = {}
    secrets: dict[Lane, list[StoredSecret]] = defaultdict(list)
    for lane, account_id, webhook_id, url, version, *facts in await session.fetch(
        _TARGETS, lanes=lanes
    ):
        found[lane] = account_id, webhook_id, url
        if version is not None and (secret := StoredSecret(version, *facts)).is_live(now):
            secrets[lane].append(secret)
    return {lane: Target(*facts, tuple(secrets[lane])) for lane, facts in found.items()}
