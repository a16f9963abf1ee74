"""Where an endpoint's deliveries go, and what signs them."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Prepared
from cuepost.adapters.storage.tables import endpoints, signing_secrets
from cuepost.domain.endpoint import StoredSecret
from cuepost.ports.dispatch import Target

_WITH_SECRETS = endpoints.outerjoin(
    signing_secrets,
    sa.and_(
        signing_secrets.c.account_id == endpoints.c.account_id,
        signing_secrets.c.webhook_id == endpoints.c.id,
    ),
)
_TARGETS = Prepared(
    lambda among: (
        sa.select(
            endpoints.c.id,
            endpoints.c.url,
            signing_secrets.c.version,
            signing_secrets.c.sealed,
            signing_secrets.c.hint,
            signing_secrets.c.created_at,
            signing_secrets.c.expires_at,
        )
        .select_from(_WITH_SECRETS)
        .where(
            among((endpoints.c.account_id, endpoints.c.id), "accounts", "webhooks"),
            endpoints.c.deleted_at.is_(None),
        )
        .order_by(signing_secrets.c.version.desc())
    )
)


async def load_targets(
    session: Session, keys: Collection[tuple[UUID, UUID]], now: datetime
) -> dict[UUID, Target]:
    """URL and live secrets, by (account, endpoint); of deleted endpoints there are none."""
    accounts, webhooks = zip(*keys, strict=True)
    urls: dict[UUID, str] = {}
    secrets: dict[UUID, list[StoredSecret]] = defaultdict(list)
    rows = await session.fetch(_TARGETS, accounts=accounts, webhooks=webhooks)
    for webhook_id, url, version, *facts in rows:
        urls[webhook_id] = url
        if version is not None and (secret := StoredSecret(version, *facts)).is_live(now):
            secrets[webhook_id].append(secret)
    return {webhook_id: Target(url, tuple(secrets[webhook_id])) for webhook_id, url in urls.items()}
