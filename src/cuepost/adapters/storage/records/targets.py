"""Where an endpoint's deliveries go, and what signs them."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.tables import endpoints, signing_secrets
from cuepost.domain.endpoint import StoredSecret
from cuepost.ports.dispatch import Target


async def load_targets(
    session: Session, keys: Collection[tuple[UUID, UUID]], now: datetime
) -> dict[UUID, Target]:
    """URL and live secrets, by (account, endpoint); of deleted endpoints there are none."""
    found = await session.all(
        sa.select(endpoints.c.id, endpoints.c.url).where(
            sa.tuple_(endpoints.c.account_id, endpoints.c.id).in_(list(keys)),
            endpoints.c.deleted_at.is_(None),
        )
    )
    rows = await session.all(
        sa.select(signing_secrets)
        .where(
            sa.tuple_(signing_secrets.c.account_id, signing_secrets.c.webhook_id).in_(list(keys))
        )
        .order_by(signing_secrets.c.version.desc())
    )
    secrets: dict[UUID, list[StoredSecret]] = defaultdict(list)
    for row in rows:
        secret = StoredSecret(row.version, row.sealed, row.hint, row.created_at, row.expires_at)
        if secret.is_live(now):
            secrets[row.webhook_id].append(secret)
    return {row.id: Target(row.url, tuple(secrets[row.id])) for row in found}
