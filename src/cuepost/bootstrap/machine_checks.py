"""The checks of `cuepost doctor` of the machine: folder, disk, clock, limits, extras."""

import os
import resource
import shutil
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from cuepost.adapters.clock_state import is_synchronised
from cuepost.adapters.master_key_file import BadKeyFile, read
from cuepost.bootstrap.container import MASTER_KEY_FILE
from cuepost.bootstrap.extras import is_installed
from cuepost.interfaces.cli.runtime import CheckResult, failure, fine, warning
from cuepost.settings import Settings

MEGABYTE = 1_000_000
LEAST_FREE = 100 * MEGABYTE
LITTLE_FREE = 1_000 * MEGABYTE
# Receivers refuse timestamps older than five minutes, and their clocks may be off as well.
LARGEST_OFFSET = timedelta(seconds=30)
# Descriptors for clients, files and the store, besides the connections to receivers.
OTHER_DESCRIPTORS = 512
OPEN_TO_OTHERS = 0o077
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def settings_checks(settings: Settings) -> Iterator[CheckResult]:
    yield fine("settings", f"The settings can be used; the store is {settings.database_url.shown}.")
    parts = urlsplit(settings.base_url)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        yield warning(
            "settings",
            f"CUEPOST_BASE_URL is {settings.base_url}: keys and links travel unencrypted.",
            "Put a proxy with TLS in front, and set CUEPOST_BASE_URL to its https address.",
        )
    if settings.receiver_http and parts.hostname not in LOOPBACK:
        yield warning(
            "settings",
            "CUEPOST_RECEIVER_HTTP is true: webhooks may go out unencrypted.",
            "Unset it; it is meant for local work.",
        )


def extras_checks(settings: Settings) -> Iterator[CheckResult]:
    wanted = {
        "postgres": settings.database_url.path is None,
        "s3": settings.media_url.startswith("s3:"),
        "oidc": settings.oidc_issuer is not None,
        "otel": settings.traces or settings.otlp_metrics,
    }
    missing = [extra for extra, needed in wanted.items() if needed and not is_installed(extra)]
    if missing:
        named = ",".join(missing)
        yield failure(
            "packages",
            f"The settings need extras that are not installed: {named}.",
            f"Run: pip install 'cuepost[{named}]'",
        )
        return
    unused = [extra for extra in ("mcp",) if not is_installed(extra)]
    without = " MCP is not installed, so /mcp answers 501." if unused else ""
    yield fine("packages", f"Everything that the settings need is installed.{without}")


def folder_checks(settings: Settings) -> Iterator[CheckResult]:
    folder = settings.data_dir
    if not folder.exists():
        found = _existing(folder)
        if os.access(found, os.W_OK | os.X_OK):
            yield fine("folder", f"{folder} will be created at the first start.")
        else:
            yield _not_writable(found)
        return
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield _not_writable(folder)
    elif folder.stat().st_mode & OPEN_TO_OTHERS:
        yield warning("folder", f"Other users can read {folder}.", f"Run: chmod 700 {folder}")
    else:
        yield fine("folder", f"{folder} can be written, only by its owner.")


def _not_writable(folder: Path) -> CheckResult:
    return failure(
        "folder",
        f"{folder} cannot be written by user {os.getuid()}.",
        f"Run as the user that the service runs as, or: chown -R {os.getuid()} {folder}",
    )


def disk_checks(settings: Settings) -> Iterator[CheckResult]:
    place = settings.database_url.path or settings.data_dir
    free = shutil.disk_usage(_existing(place)).free
    text = f"{free / MEGABYTE:,.0f} MB are free where {place} is."
    fix = "Free some space, or move CUEPOST_DATA_DIR; on a full disk nothing can be stored."
    if free < LEAST_FREE:
        yield failure("disk", text, fix)
    elif free < LITTLE_FREE:
        yield warning("disk", text, fix)
    else:
        yield fine("disk", text)


def key_checks(settings: Settings) -> Iterator[CheckResult]:
    if settings.master_key is not None:
        count = len(settings.master_key)
        yield fine("master key", f"CUEPOST_MASTER_KEY holds {count} key{'s' * (count > 1)}.")
        return
    path = settings.data_dir / MASTER_KEY_FILE
    try:
        read(path)
    except FileNotFoundError:
        yield fine("master key", f"{path} will be created at the first start.")
    except (BadKeyFile, OSError) as error:
        fix = f"Restore the right key, with mode 600, to {path}; there may be a backup of it."
        yield failure("master key", str(error), fix)
    else:
        yield fine("master key", f"{path} is a key that only its owner can read.")
        if settings.database_url.path is None:
            yield warning(
                "master key",
                "The store is shared, but the key is a file of this machine.",
                "Give every process the same CUEPOST_MASTER_KEY.",
            )


def clock_checks(ahead_of_us: timedelta) -> Iterator[CheckResult]:
    """`ahead_of_us` is how far the clock of the database server is ahead."""
    fix = "Run chrony or systemd-timesyncd; receivers refuse timestamps that are five minutes off."
    if abs(ahead_of_us) > LARGEST_OFFSET:
        seconds = ahead_of_us.total_seconds()
        yield failure("clock", f"The database's clock differs by {seconds:+.0f} s.", fix)
    elif is_synchronised() is False:
        yield warning("clock", "The system clock is not synchronised.", fix)
    else:
        yield fine("clock", "The clock is synchronised, as far as the system reports it.")


def limit_checks(settings: Settings) -> Iterator[CheckResult]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * settings.worker_concurrency + OTHER_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and hard < needed:
        yield warning(
            "limits",
            f"A process may open {hard} files; up to {needed} are needed.",
            f"Set LimitNOFILE={needed} (systemd) or ulimit -Hn {needed}, or lower "
            "CUEPOST_WORKER_CONCURRENCY.",
        )
    else:
        yield fine("limits", "A process may open as many files as it needs.")


def proxy_variables(environ: Mapping[str, str]) -> Iterator[CheckResult]:
    found = [name for name in environ if name.lower() in {"http_proxy", "https_proxy", "all_proxy"}]
    if found:
        yield warning(
            "proxy",
            f"{', '.join(sorted(found))}: deliveries are sent directly and ignore it.",
            "Let this machine reach receivers on port 443 without a proxy.",
        )


def _existing(path: Path) -> Path:
    """The path itself, or the nearest parent that exists."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
