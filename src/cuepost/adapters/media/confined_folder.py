"""File access confined to a folder: each step of a path is opened relative to the one before it.

Symbolic links are never followed, even if the tree changes at the same time, and only regular
files can be opened.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_INNER = _FOLDER | os.O_NOFOLLOW
# O_NONBLOCK: should a named pipe replace the file, opening it must not wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Outside(OSError):
    """The key does not name a regular file inside the folder."""


def open_inside(root: Path, key: str) -> int:
    """A descriptor of the file; OSError if there is none."""
    *folders, name = _steps(key)
    with _walked(root, folders) as folder:
        _require_plain(os.stat(name, dir_fd=folder, follow_symlinks=False))
        descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        _require_plain(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def created_inside(root: Path, key: str, draft: str) -> Iterator[int]:
    """A descriptor to write to; the file gets its name when the block ends without an error."""
    *folders, name = _steps(key)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _walked(root, folders, making=True) as folder:
        descriptor = os.open(draft, _NEW, 0o600, dir_fd=folder)
        try:
            try:
                yield descriptor
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)
            raise
        os.fsync(folder)


def remove_inside(root: Path, key: str) -> None:
    """Empty folders stay, because another process may be about to write into them."""
    try:
        *folders, name = _steps(key)
        with _walked(root, folders) as folder:
            os.unlink(name, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError, Outside):
        return


@contextmanager
def _walked(root: Path, folders: list[str], *, making: bool = False) -> Iterator[int]:
    # The root itself may be a symbolic link, because the operator chose it.
    here = os.open(root, _FOLDER)
    try:
        for name in folders:
            if making:
                _make(name, here)
            inner = os.open(name, _INNER, dir_fd=here)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def _make(name: str, inside: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=inside)
        os.fsync(inside)


def _steps(key: str) -> list[str]:
    steps = key.split("/")
    if "\0" in key or any(step in {"", ".", ".."} for step in steps):
        raise Outside
    try:
        key.encode()
    except UnicodeEncodeError:
        raise Outside from None
    return steps


def _require_plain(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Outside
