"""The master key file of an embedded service: created once, readable only by its owner."""

import os
import stat
from base64 import b64decode, b64encode
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

from cuepost.adapters.secret_box import KEY_BYTES
from cuepost.ports.system import Entropy

_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class BadKeyFile(Exception):
    """The master key file cannot be used."""


def read_or_make(path: Path, entropy: Entropy) -> bytes:
    """Two processes that start at once on an empty folder get the same key."""
    try:
        return read(path)
    except FileNotFoundError:
        _make(path, entropy(KEY_BYTES))
        return read(path)


def read(path: Path) -> bytes:
    with path.open("rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & _OPEN_TO_OTHERS:
            raise BadKeyFile(
                f"The master key file is open to others (mode {mode:04o}): run 'chmod 600 {path}', "
                "and assume that other users of this machine have read the key."
            )
        content = file.read(1024)
    try:
        key = b64decode(content.strip(), validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadKeyFile(f"{path} does not hold a master key: {KEY_BYTES} bytes as base64.")
    return key


def _make(path: Path, key: bytes) -> None:
    """Writes a draft first, so that the name appears only when the key is safe on disk."""
    descriptor, draft = mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(b64encode(key) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, a link does not replace a key that another process has just created.
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
