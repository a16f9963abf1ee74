"""Starts `cuepost` without loading it again each time: split off from an interpreter that has."""

import atexit
import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
LOADING_SECONDS = 60.0


class QuickStart(subprocess.Popen[Any]):
    """Takes `cuepost`'s arguments alone; a child of this process like any other."""

    def _execute_child(self, args: Sequence[str], *given: Any) -> None:
        """In the place of the one that starts a program; `given` is in the same order for years."""
        folder, environ, pipes = given[4], given[5], given[9:15]
        theirs = (pipes[0], pipes[3], pipes[5])
        order = {
            "arguments": list(args),
            "environ": dict(os.environ if environ is None else environ),
            "folder": folder or str(Path.cwd()),
        }
        files = [ours if file == -1 else file for ours, file in enumerate(theirs)]
        self.pid = _loaded_interpreter().split_off(json.dumps(order).encode(), files)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]  # as the original does


class _LoadedInterpreter:
    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders.settimeout(LOADING_SECONDS)
        number = theirs.fileno()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.loaded_interpreter", str(number)],
                stdin=subprocess.DEVNULL,
                pass_fds=[number],
            )

    def split_off(self, order: bytes, files: Sequence[int]) -> int:
        """The process id of a new child."""
        _adopt_orphans(True)
        try:
            socket.send_fds(self._orders, [order], files)
            made = int(self._orders.recv(100))
            assert self._orders.recv(100) == b"done"
        finally:
            _adopt_orphans(False)
        return made

    def close(self) -> None:
        self._orders.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LOADING_SECONDS)


@cache
def _loaded_interpreter() -> _LoadedInterpreter:
    made = _LoadedInterpreter()
    atexit.register(made.close)
    return made


def _adopt_orphans(wanted: bool) -> None:
    """Only for a moment, or else this process would get those of every other test as well."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")
