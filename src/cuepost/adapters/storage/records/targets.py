"""Where an endpoint's deliveries go, and what signs them."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Pairs, Prepared
from cuepost.adapters.storage.tables import endpoints, signing_secrets
from cuepost.domain.endpoint import StoredSecret
from cuepost.ports.dispatch import Target

_URLS = Prepared(
    sa.select(endpoints.c.id, endpoints.c.url).where(
        Pairs((endpoints.c.account_id, endpoints.c.id), "accounts", "webhooks"),
        endpoints.c.deleted_at.is_(None),
    )
)
_SECRETS = Prepared(
    sa.select(
        signing_secrets.c.webhook_id,
        signing_secrets.c.version,
        signing_secrets.c.sealed,
        signing_secrets.c.hint,
        signing_secrets.c.created_at,
        signing_secrets.c.expires_at,
    )
    .where(
        Pairs((signing_secrets.c.account_id, signing_secrets.c.webhook_id), "accounts", "webhooks")
    )
    .order_by(signing_secrets.c.version.desc())
)


async def load_targets(
    session: Session, keys: Collection[tuple[UUID, UUID]], now: datetime
) -> dict[UUID, Target]:
    """URL and live secrets, by (account, endpoint); of deleted endpoints there are none."""
    accounts, webhooks = zip(*keys, strict=True)
    found = await session.fetch(_URLS, accounts=accounts, webhooks=webhooks)
    secrets: dict[UUID, list[StoredSecret]] = defaultdict(list)
    for webhook_id, *facts in await session.fetch(_SECRETS, accounts=accounts, webhooks=webhooks):
        secret = StoredSecret(*facts)
        if secret.is_live(now):
            secrets[webhook_id].append(secret)
    return {webhook_id: Target(url, tuple(secrets[webhook_id])) for webhook_id, url in found}
