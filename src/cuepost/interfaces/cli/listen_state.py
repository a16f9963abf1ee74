"""The local state of `cuepost listen`: the name that it resumes under, and its secret."""

import fcntl
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cuepost.domain.signing import KEY_BYTES, SigningSecret
from cuepost.interfaces.cli.runtime import CannotRun

TOKEN_BYTES = 4
LONGEST_HOST_NAME = 60

Entropy = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Identity:
    """`registered_as` is the name at the service, unique to this machine."""

    registered_as: str
    secret: SigningSecret = field(repr=False)


def folder() -> Path:
    """The state folder according to the XDG base directory specification."""
    chosen = os.environ.get("XDG_STATE_HOME", "")
    home = Path(chosen) if chosen.startswith("/") else Path.home() / ".local" / "state"
    return home / "cuepost" / "listeners"


@contextmanager
def locked_identity(service: str, name: str, entropy: Entropy) -> Iterator[Identity]:
    """Read or create the identity and lock it; the lock ends with the process."""
    digest = hashlib.sha256(f"{service}\n{name}".encode()).hexdigest()[:32]
    path = folder() / f"{digest}.json"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotRun(f"Cannot write to {path.parent}: {error.strerror}.") from error
    try:
        _lock(lock, name)
        yield _read(path) if path.exists() else _create(path, service, name, entropy)
    finally:
        os.close(lock)


def _lock(lock: int, name: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CannotRun(
            f"Another 'cuepost listen' already uses the name {name!r}; stop it, or choose another "
            "--name."
        ) from None


def _create(path: Path, service: str, name: str, entropy: Entropy) -> Identity:
    host = platform.node()[:LONGEST_HOST_NAME] or "unknown host"
    made = Identity(
        f"{name} on {host} {entropy(TOKEN_BYTES).hex()}", SigningSecret(entropy(KEY_BYTES))
    )
    kept = {
        "service": service,
        "name": name,
        "registeredAs": made.registered_as,
        "secret": made.secret.reveal(),
    }
    try:
        _write_atomically(path, json.dumps(kept, indent=2) + "\n")
    except OSError as error:
        raise CannotRun(f"Cannot write {path}: {error.strerror}.") from error
    return made


def _write_atomically(path: Path, text: str) -> None:
    """Write atomically: a crash leaves either the whole file or none."""
    unfinished = path.with_suffix(".new")
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def _read(path: Path) -> Identity:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return Identity(str(kept["registeredAs"]), SigningSecret.parse(str(kept["secret"])))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotRun(
            f"{path} cannot be read ({type(error).__name__}); delete it to start again."
        ) from error
