"""An interpreter that has loaded cuepost and waits; it splits off a process for each that is asked.

Loading takes a second, and the tests start hundreds. Each is a process of its own from then on,
with its own signals, files and end; `quick_start` is for its callers.
"""

import gc
import importlib
import io
import json
import os
import signal
import socket
import sys
import threading
from typing import Any

from cuepost.bootstrap import main

LARGEST = 1 << 20
# What a command loads only when it is needed.
LOADED = (
    "alembic.command",
    "cuepost.adapters.storage.postgres",
    "cuepost.bootstrap.runtime",
    "cuepost.bootstrap.on_postgres",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
)


def wait_for_orders(orders: socket.socket) -> None:
    """Returns in each new process; ends together with its caller."""
    while True:
        reported, files, _, _ = socket.recv_fds(orders, LARGEST, 3)
        if not reported:
            sys.exit()
        between = os.fork()
        if between == 0 and _split_off(orders):
            _become(json.loads(reported), files)
            return
        for file in files:
            os.close(file)
        # With its parent gone, the new process is a child of the caller.
        os.waitpid(between, 0)
        orders.send(b"done")


def _split_off(orders: socket.socket) -> bool:
    """Whether this is the new process; the one between tells of it, and is gone."""
    made = os.fork()
    if made:
        orders.send(str(made).encode())
        os._exit(0)
    orders.close()
    return True


def _become(order: dict[str, Any], files: list[int]) -> None:
    """As if this interpreter had been started with these arguments and files, in this place."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environ"])
    sys.argv[1:] = order["arguments"]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = _writer(1, "strict")
    sys.stderr = _writer(2, "backslashreplace")


def _writer(number: int, errors: str) -> io.TextIOWrapper:
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    file = os.fdopen(number, "wb", 0 if unbuffered else -1, closefd=False)
    by_line = number == 2 or os.isatty(number)
    return io.TextIOWrapper(file, "utf-8", errors, line_buffering=by_line, write_through=unbuffered)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in LOADED:
        importlib.import_module(name)
    assert threading.active_count() == 1
    # Or else each new process would look through all of it when it ends.
    gc.freeze()
    wait_for_orders(socket.socket(fileno=int(sys.argv[1])))
    main()
