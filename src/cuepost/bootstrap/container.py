"""Builds the container of a service from the settings."""

import logging
import os
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from cuepost.adapters.argon2_passwords import Argon2Passwords
from cuepost.adapters.master_key_file import read_or_make
from cuepost.adapters.media.local import LocalMedia
from cuepost.adapters.secret_box import AesGcmBox
from cuepost.adapters.storage.pooler import Pooler, WrongPooler
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import SystemClock, SystemIds, system_entropy
from cuepost.adapters.system_resolver import SystemResolver
from cuepost.application.service import Rules, Service, SystemPorts, assemble, inbox_prefix
from cuepost.bootstrap.extras import require
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.portal import PortalPolicy
from cuepost.log_lines import log_store_error
from cuepost.ports.media import Media
from cuepost.ports.store import Replica, Store, StoreUnavailable
from cuepost.settings import Settings

if TYPE_CHECKING:
    from cuepost.adapters.storage.postgres import PostgresStore

log = logging.getLogger("cuepost.store")

DATABASE_RETRY_SECONDS = 1.0
MASTER_KEY_FILE = "master.key"
SQLITE_HEADER = b"SQLite format 3\0"


class NoStore(Exception):
    """The file of the embedded store cannot be used."""


@dataclass(frozen=True, slots=True)
class Container:
    settings: Settings
    store: Store
    system: SystemPorts
    rules: Rules
    service: Service


@asynccontextmanager
async def running(
    settings: Settings, *, migrating: bool = False, wait_for_database: bool = False
) -> AsyncIterator[Container]:
    """With `wait_for_database`, the start waits until the database can be reached."""
    clock = SystemClock()
    master_keys = _master_keys(settings)
    box = AesGcmBox(master_keys, system_entropy)
    system = SystemPorts(
        clock, SystemIds(), system_entropy, box, Argon2Passwords(), SystemResolver()
    )
    async with (
        opened_store(
            settings, clock, migrating=migrating, wait_for_database=wait_for_database
        ) as store,
        _replica(settings) as replica,
    ):
        rules = _rules(settings)
        with _media(settings, master_keys) as media:
            service = assemble(store, system, rules, media, replica)
            yield Container(settings, store, system, rules, service)


@asynccontextmanager
async def opened_store(
    settings: Settings,
    clock: SystemClock,
    *,
    migrating: bool = False,
    with_downtime: bool = False,
    wait_for_database: bool = False,
) -> AsyncIterator[Store]:
    """The embedded store always migrates its schema; PostgreSQL only if `migrating`."""
    store: SqliteStore | PostgresStore
    opening: Coroutine[Any, Any, object]
    if settings.database_url.path is not None:
        store = SqliteStore(_usable_file(settings, settings.database_url.path), clock)
        opening = store.open()
    else:
        store = _postgres_store(settings)
        opening = (
            store.migrate(clock.now(), with_downtime=with_downtime)
            if migrating
            else _open(store, clock, wait_for_database=wait_for_database)
        )
    try:
        await opening
        yield store
    finally:
        await store.close()


async def _open(store: "PostgresStore", clock: SystemClock, *, wait_for_database: bool) -> None:
    while True:
        try:
            return await store.open(clock.now())
        except StoreUnavailable as error:
            if not wait_for_database or isinstance(error, WrongPooler):
                raise
            log_store_error(log, "waiting_for_database", error, "start")
        await clock.wait(DATABASE_RETRY_SECONDS)


def _postgres_store(settings: Settings) -> "PostgresStore":
    """Imports the driver here, because it loads slowly and an embedded store does not need it."""
    require("postgres", "CUEPOST_DATABASE_URL names PostgreSQL")
    from cuepost.adapters.storage.postgres import PostgresStore  # noqa: PLC0415  # see above

    direct = settings.database_direct_url
    return PostgresStore(
        settings.database_url.url,
        direct_url=direct.url if direct else None,
        pooler=Pooler(settings.database_pooler),
        connections=settings.database_connections,
        idle_seconds=settings.database_idle_timeout,
        uses_server_clock=True,
    )


@asynccontextmanager
async def _replica(settings: Settings) -> AsyncIterator[Replica | None]:
    """The replica connects at the first read."""
    if settings.database_replica_url is None:
        yield None
        return
    from cuepost.adapters.storage.postgres_replica import (  # noqa: PLC0415  # see above
        PostgresReplica,
    )

    replica = PostgresReplica(
        settings.database_replica_url.url,
        max_lag=timedelta(seconds=settings.database_replica_max_lag),
        pooler=Pooler(settings.database_pooler),
        connections=settings.database_connections,
        idle_seconds=settings.database_idle_timeout,
    )
    try:
        yield replica
    finally:
        await replica.close()


@contextmanager
def _media(settings: Settings, master_keys: tuple[bytes, ...]) -> Iterator[Media]:
    place = urlsplit(settings.media_url)
    if place.scheme == "s3":
        require("s3", "CUEPOST_MEDIA_URL names S3")
        from cuepost.adapters.media.s3 import S3Media  # noqa: PLC0415  # as PostgreSQL's driver

        s3 = S3Media.of(
            place.netloc,
            place.path.strip("/"),
            endpoint=settings.s3_endpoint,
            region=settings.s3_region,
            path_style=settings.s3_path_style,
        )
        yield Media(s3, s3)
        return
    local = LocalMedia(Path(unquote(place.path)), settings.base_url, master_keys)
    try:
        yield Media(local, local, local)
    finally:
        local.close()


def _rules(settings: Settings) -> Rules:
    return Rules(
        base_url=settings.base_url,
        policy=EgressPolicy(
            networks=settings.receiver_networks,
            ports=settings.receiver_ports,
            allow_http=settings.receiver_http,
            inbox_prefix=inbox_prefix(settings.base_url),
        ),
        rotation_overlap=timedelta(hours=settings.rotation_overlap_hours),
        endpoint_limit=settings.max_endpoints_per_account,
        requests_per_minute=settings.rate_limit,
        service_requests_per_minute=settings.service_rate_limit,
        link_ttl=timedelta(seconds=settings.result_link_ttl),
        retention=timedelta(days=settings.retention_days),
        request_timeout=settings.request_timeout,
        cell=settings.cell,
        webhooks_access=settings.webhooks_access,
        portal=PortalPolicy(settings.portal_origins),
        mails=settings.smtp_url is not None,
        password_sign_in=settings.password_sign_in,
    )


def _master_keys(settings: Settings) -> tuple[bytes, ...]:
    if settings.master_key is not None:
        return settings.master_key
    path = _data_dir(settings) / MASTER_KEY_FILE
    return (read_or_make(path, system_entropy),)


def _data_dir(settings: Settings) -> Path:
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    return settings.data_dir


def _usable_file(settings: Settings, path: Path) -> Path:
    if path.parent == settings.data_dir:
        _data_dir(settings)
    if not path.parent.is_dir():
        raise NoStore(f"The folder of the store does not exist: {path.parent}.")
    if path.exists():
        if not path.is_file() or not os.access(path, os.R_OK | os.W_OK):
            raise NoStore(f"The store cannot be read and written: {path}.")
        with path.open("rb") as file:
            if file.read(len(SQLITE_HEADER)) not in {b"", SQLITE_HEADER}:
                raise NoStore(f"This is not an SQLite file: {path}.")
    return path
