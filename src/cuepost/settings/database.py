"""The settings about the database, and which combinations are refused."""

from dataclasses import dataclass
from typing import Annotated

from cuepost.settings import kinds
from cuepost.settings.database_url import DatabaseUrl
from cuepost.settings.inbound import InboundSettings
from cuepost.settings.kinds import decimal, optional, whole
from cuepost.settings.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings(InboundSettings):
    database_url: Annotated[
        DatabaseUrl,
        Setting(
            kinds.DATABASE_URL,
            None,
            "Where the store is. Several processes or machines need PostgreSQL.",
            "SQLite in `DATA_DIR`",
        ),
    ]
    database_connections: Annotated[
        int,
        Setting(
            whole(4, 1_000),
            "20",
            "The most connections of one process to PostgreSQL, and as many to the replica; one "
            "more is for wake-ups.",
        ),
    ]
    database_idle_timeout: Annotated[
        float,
        Setting(
            decimal(1, 86_400, "seconds"),
            "300",
            "How long an idle connection to PostgreSQL stays open.",
        ),
    ]
    database_pooler: Annotated[
        str,
        Setting(
            kinds.POOLER,
            "none",
            "The pooler between the service and PostgreSQL, such as PgBouncer: it assigns server "
            "connections by `session` or by `transaction`, or by `transaction-prepared` if it "
            "supports prepared statements as well.",
        ),
    ]
    database_direct_url: Annotated[
        DatabaseUrl | None,
        Setting(
            optional(kinds.POSTGRES_URL),
            "",
            "PostgreSQL without the pooler, for wake-ups and `migrate`; needed with a pooler by "
            "transaction. Empty: `DATABASE_URL`.",
        ),
    ]
    database_replica_url: Annotated[
        DatabaseUrl | None,
        Setting(
            optional(kinds.POSTGRES_URL),
            "",
            "A hot standby for lists of history and figures, which may then lag a little. "
            "Empty: they are read from `DATABASE_URL`.",
        ),
    ]
    database_replica_max_lag: Annotated[
        float,
        Setting(
            decimal(1, 86_400, "seconds"),
            "30",
            "A replica that is further behind is not read.",
        ),
    ]


def contradiction(settings: DatabaseSettings) -> tuple[str, str] | None:
    """A setting that contradicts another one, and the reason."""
    for_postgres = {
        "database_pooler": settings.database_pooler != "none",
        "database_direct_url": settings.database_direct_url is not None,
        "database_replica_url": settings.database_replica_url is not None,
    }
    if settings.database_url.path is not None:
        for name, is_given in for_postgres.items():
            if is_given:
                return name, "it is for PostgreSQL, and the store is SQLite."
    if settings.database_pooler.startswith("transaction") and not settings.database_direct_url:
        why = f"'{settings.database_pooler}' needs CUEPOST_DATABASE_DIRECT_URL as well."
        return "database_pooler", why
    return None
