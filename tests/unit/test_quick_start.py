"""A process that is split off is like one that was started: its place, words, signals and end."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from cuepost import __version__
from tests.support.service_process import (
    PATIENCE_SECONDS,
    ServiceProcess,
    environment,
    free_port,
    run,
    start,
)


@pytest.mark.parametrize("arguments", [("--version",), ("no-such-command",), ("keys", "--help")])
def test_it_says_and_ends_as_a_fresh_one(arguments: tuple[str, ...]) -> None:
    with start(environment({}), *arguments, fresh=True, stderr=subprocess.PIPE, text=True) as fresh:
        reported, complaints = fresh.communicate(timeout=PATIENCE_SECONDS)
    ran = run({}, *arguments)
    assert (ran.returncode, ran.stdout, ran.stderr) == (fresh.returncode, reported, complaints)
    assert __version__ in reported or arguments != ("--version",)


def test_it_is_a_child_with_the_given_environment_and_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"DATA_DIR": "here", "PORT": str(free_port())}
    with ServiceProcess(settings) as service:
        process = Path(f"/proc/{service.pid}")
        assert (process / "stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid())
        assert (process / "cwd").readlink() == tmp_path
        assert (tmp_path / "here" / "cuepost.sqlite3").exists()
        os.kill(service.pid, signal.SIGINT)
        assert service.wait().code == 0
        assert not process.exists()


def test_two_do_not_share_their_chance(tmp_path: Path) -> None:
    greetings = []
    for name in ("one", "two"):
        settings = {"DATA_DIR": str(tmp_path / name), "PORT": str(free_port())}
        with ServiceProcess(settings) as service:
            greetings.append(service.greeting)
    keys = [{word for word in each.split() if word.startswith("cpk_")} for each in greetings]
    assert len(keys[0] | keys[1]) == len(keys[0]) + len(keys[1]) > 3
