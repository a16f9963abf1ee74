"""The checks of `cuepost doctor`, in the order of their dependencies."""

import asyncio
import http.client
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from itertools import chain
from urllib.parse import urlsplit

from cuepost.adapters.storage.inspection import (
    CannotInspect,
    Inspected,
    inspect_postgres,
    inspect_sqlite,
)
from cuepost.adapters.system_clock import SystemClock
from cuepost.adapters.system_resolver import SystemResolver
from cuepost.application.rekey import KeysInUse
from cuepost.bootstrap.container import Container, running
from cuepost.bootstrap.extras import is_installed
from cuepost.bootstrap.machine_checks import (
    clock_checks,
    disk_checks,
    extras_checks,
    folder_checks,
    key_checks,
    limit_checks,
    proxy_variables,
    settings_checks,
)
from cuepost.bootstrap.mail import mail_checks
from cuepost.bootstrap.openid import openid_checks
from cuepost.domain.egress_policy import Address, Verdict, judge_answers
from cuepost.domain.receiver_url import ReceiverUrl, ReceiverUrlRefused, parse_receiver_url
from cuepost.interfaces.cli.runtime import CheckResult, Level, failure, fine, warning
from cuepost.ports.records import Page
from cuepost.ports.transport import CannotResolve
from cuepost.settings import Settings

ACCOUNTS, ENDPOINTS, RECEIVERS = 50, 20, 5
TIMEOUT_SECONDS = 5.0
ALIVE = b'{"status":"ok"}'
NO_DRIVER = "Run: pip install 'cuepost[postgres]'"
CHECK_SERVER = "Start the database, and check address, user and password in CUEPOST_DATABASE_URL."
RESTORE = "Stop the service and restore the file from a backup: docs/operations.md says how."


async def examined(
    settings: Settings, environ: Mapping[str, str], *, offline: bool
) -> AsyncIterator[CheckResult]:
    """`offline` skips the checks that need the network: the service's own URL and receivers."""
    machine = (settings_checks, extras_checks, folder_checks, disk_checks, key_checks, limit_checks)
    usable = True
    for finding in chain.from_iterable(check(settings) for check in machine):
        usable = usable and (finding.level is not Level.FAILURE or finding.check == "disk")
        yield finding
    for finding in proxy_variables(environ):
        yield finding
    inspected = await _inspected(settings)
    ahead = inspected.clock_ahead if isinstance(inspected, Inspected) else timedelta(0)
    for finding in clock_checks(ahead):
        yield finding
    if not offline:
        yield await asyncio.to_thread(_own_address, settings.base_url)
        async for finding in mail_checks(settings, SystemClock()):
            yield finding
        async for finding in openid_checks(settings, SystemClock()):
            yield finding
    if isinstance(inspected, CheckResult):
        yield inspected
        return
    yield fine("store", f"{settings.database_url.shown} can be reached.")
    schema = _schema_check(inspected, embedded=settings.database_url.path is not None)
    yield schema
    if schema.level is Level.OK and usable:
        async with running(settings) as container:
            async for finding in _content_checks(container, offline=offline):
                yield finding


async def _inspected(settings: Settings) -> Inspected | CheckResult:
    """A finding where there is nothing to look at."""
    path = settings.database_url.path
    if path is None and not is_installed("postgres"):
        return warning("store", "It cannot be checked without the driver.", NO_DRIVER)
    if path is not None and not path.exists():
        return fine("store", f"{path} will be created at the first start.")
    try:
        if path is not None:
            return inspect_sqlite(path)
        return await inspect_postgres(settings.database_url.url, SystemClock().now())
    except CannotInspect as error:
        fix = CHECK_SERVER if path is None else RESTORE
        return failure("store", f"{settings.database_url.shown}: {error}", fix)


def _schema_check(inspected: Inspected, *, embedded: bool) -> CheckResult:
    found, newest = inspected.found, inspected.newest
    if found.revision == newest:
        return fine("schema", f"The schema is the one of this version ({newest}).")
    if found.is_newer:
        text = f"The schema ({found.revision}) is of a newer version of cuepost"
        if found.is_usable:
            return fine("schema", f"{text}; this one ({newest}) can run on it.")
        return failure(
            "schema",
            f"{text}, and this one ({newest}) cannot run on it.",
            "Start that version or a newer one.",
        )
    text = "There is no schema yet."
    if found.revision is not None:
        text = f"The schema is older ({found.revision})."
    if embedded:
        return warning("schema", text, "The next start migrates it; make a backup first.")
    return failure("schema", text, "Run: cuepost migrate")


async def _content_checks(container: Container, *, offline: bool) -> AsyncIterator[CheckResult]:
    receivers: dict[str, ReceiverUrl] = {}
    async with container.store.snapshot() as snapshot:
        for account in await snapshot.accounts.oldest(ACCOUNTS):
            for endpoint in await snapshot.endpoints.page(account.id, Page(limit=ENDPOINTS)):
                if (url := _parsed(container, endpoint.url)) is not None:
                    receivers.setdefault(f"{url.host}:{url.port}", url)
    yield _secrets_check(await container.service.maintenance.master_keys.keys_in_use())
    if not offline:
        for finding in await _receiver_checks(container, list(receivers.values())[:RECEIVERS]):
            yield finding


def _parsed(container: Container, url: str) -> ReceiverUrl | None:
    """None for a test inbox, and for a URL that the current settings refuse."""
    try:
        parsed = parse_receiver_url(url, container.rules.policy)
    except ReceiverUrlRefused:
        return None
    return None if parsed.inbox is not None else parsed


def _secrets_check(keys: KeysInUse) -> CheckResult:
    total = sum(keys.counts.values())
    if keys.lost:
        return failure(
            "secrets",
            f"{keys.lost} of {total} stored values are encrypted with a missing master key.",
            "Add that key to CUEPOST_MASTER_KEY again, after a comma, and run: cuepost rekey",
        )
    if keys.older:
        return warning(
            "secrets",
            f"{keys.older} of {total} stored values are encrypted with an older master key.",
            "Run: cuepost rekey",
        )
    return fine("secrets", f"All {total} stored values are encrypted with the newest master key.")


async def _receiver_checks(
    container: Container, urls: Sequence[ReceiverUrl]
) -> Sequence[CheckResult]:
    if not urls:
        return [fine("receivers", "There is no receiver to reach yet.")]
    findings = await asyncio.gather(*(_reached(container, url) for url in urls))
    faults = [each for each in findings if each is not None]
    return faults or [fine("receivers", f"Names and connections of {len(urls)} receivers work.")]


async def _reached(container: Container, url: ReceiverUrl) -> CheckResult | None:
    where = f"{url.host}:{url.port}"
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            addresses = await _addresses(url)
    except (CannotResolve, TimeoutError):
        fix = "If other names work, the receiver's DNS is wrong; otherwise see /etc/resolv.conf."
        return warning("dns", f"{url.host} has no address.", fix)
    if judge_answers(addresses, container.rules.policy) is not Verdict.ALLOWED:
        fix = "Its owner has to use a public address, or you allow it in CUEPOST_RECEIVER_NETWORKS."
        return warning("egress", f"{url.host} resolves to an address that is not allowed.", fix)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            _, writer = await asyncio.open_connection(str(addresses[0]), url.port)
    except (OSError, TimeoutError):
        fix = f"If no receiver can be reached, let this machine connect to port {url.port}."
        return warning("egress", f"{where} takes no connection.", fix)
    writer.close()
    return None


async def _addresses(url: ReceiverUrl) -> Sequence[Address]:
    return [url.address] if url.address else await SystemResolver().addresses(url.host)


def _own_address(base_url: str) -> CheckResult:
    """The server is cuepost if its health check has the right body and a request id."""
    fix = (
        "Start the service; if it runs, make the proxy pass CUEPOST_BASE_URL on to it "
        "(deploy/nginx has an example)."
    )
    try:
        status, is_ours = _health_of(base_url)
    except (OSError, http.client.HTTPException, ssl.SSLError) as error:
        return warning("address", f"{base_url} does not answer: {error}.", fix)
    if not is_ours:
        return warning("address", f"What answers at {base_url} is not cuepost ({status}).", fix)
    return fine("address", f"The service answers at {base_url}.")


def _health_of(base_url: str) -> tuple[int, bool]:
    parts = urlsplit(base_url)
    is_https = parts.scheme == "https"
    connect = http.client.HTTPSConnection if is_https else http.client.HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", f"{parts.path}/healthz")
        answer = connection.getresponse()
        is_ours = answer.read(100) == ALIVE and "X-Request-Id" in answer.headers
        return answer.status, is_ours
    finally:
        connection.close()
