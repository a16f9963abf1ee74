"""What only a store in an SQLite file does."""

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from cuepost_receiver import SqliteStore
from cuepost_receiver.stores import sqlite as sqlite_store


def test_a_new_file_is_opened_while_another_process_writes_its_first_page(tmp_path: Path) -> None:
    """In this state SQLite refuses a change of the journal mode without waiting."""
    path = tmp_path / "inbox.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        ending = threading.Timer(0.2, other.execute, ["COMMIT"])
        ending.start()
        store = SqliteStore(path)
        assert store.add("a", b"", 1) is True
        store.close()
        ending.join()


def test_a_file_that_stays_locked_is_refused_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.05)
    path = tmp_path / "inbox.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            SqliteStore(path).add("a", b"", 1)


FORKING = """
import os, sys
from cuepost_receiver import SqliteStore
store = SqliteStore(sys.argv[1])
store.add("before", b"", 1)
child = os.fork()
if child == 0:
    os._exit(0 if store.add("child", b"", 2) and store.close() is None else 1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
store.add("parent", b"", 3)
print(code, store.counts(), store.add("child", b"", 4))
"""


def test_a_server_that_forks_shares_the_file_and_not_the_connection(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORKING, str(tmp_path / "inbox.sqlite3")],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("0 {'waiting': 3} False\n", "")
