"""Where an endpoint's deliveries go, and what signs them."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Among, Prepared
from cuepost.adapters.storage.tables import endpoints, signing_secrets
from cuepost.domain.endpoint import StoredSecret
from cuepost.ports.dispatch import Lane, Target

_WITH_SECRETS = endpoints.outerjoin(
    signing_secrets,
    sa.and_(
        signing_secrets.c.account_id == endpoints.c.account_id,
        signing_secrets.c.webhook_id == endpoints.c.id,
    ),
)
_TARGETS = Prepared(
    sa.select(
        endpoints.c.number,
        endpoints.c.account_id,
        endpoints.c.id,
        endpoints.c.url,
        signing_secrets.c.version,
        signing_secrets.c.sealed,
        signing_secrets.c.hint,
        signing_secrets.c.created_at,
        signing_secrets.c.expires_at,
    )
    .select_from(_WITH_SECRETS)
    .where(Among(endpoints.c.number, "lanes"), endpoints.c.deleted_at.is_(None))
    .order_by(signing_secrets.c.version.desc())
)


async def load_targets(
    session: Session, lanes: Collection[Lane], now: datetime
) -> dict[Lane, Target]:
    """URL and live secrets; of deleted endpoints there are none."""
    found: dict[Lane, tuple[UUID, UUID, str]] = {}
    secrets: dict[Lane, list[StoredSecret]] = defaultdict(list)
    for lane, account_id, webhook_id, url, version, *facts in await session.fetch(
        _TARGETS, lanes=list(lanes)
    ):
        found[lane] = account_id, webhook_id, url
        if version is not None and (secret := StoredSecret(version, *facts)).is_live(now):
            secrets[lane].append(secret)
    return {lane: Target(*facts, tuple(secrets[lane])) for lane, facts in found.items()}
