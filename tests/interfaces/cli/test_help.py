"""Help for newcomers, versions, completion, and colours for terminals alone."""

import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

import cuepost
from cuepost.interfaces.cli import cli
from cuepost.settings import VARIABLES
from tests.interfaces.cli.terminal import Terminal
from tests.support.service_process import PATIENCE_SECONDS, command, environment, run


def command_paths(group: click.Group, *path: str) -> Iterator[tuple[str, ...]]:
    for name, each in group.commands.items():
        yield (*path, name)
        if isinstance(each, click.Group):
            yield from command_paths(each, *path, name)


ALL = list(command_paths(cli))


def test_the_commands_of_the_contract_are_there() -> None:
    assert ALL == [
        ("serve",),
        ("api",),
        ("worker",),
        ("demo",),
        ("setup",),
        ("accounts",),
        ("accounts", "create"),
        ("accounts", "list"),
        ("accounts", "get"),
        ("accounts", "update"),
        ("accounts", "open-access"),
        ("accounts", "close-access"),
        ("accounts", "sign-in-link"),
        ("accounts", "export"),
        ("accounts", "import"),
        ("accounts", "finish-move"),
        ("accounts", "release"),
        ("accounts", "abort-move"),
        ("members",),
        ("members", "list"),
        ("members", "invite"),
        ("members", "add"),
        ("members", "update"),
        ("members", "set-role"),
        ("members", "set-alerts"),
        ("members", "remove"),
        ("members", "resend-invitation"),
        ("members", "revoke-invitation"),
        ("keys",),
        ("keys", "create"),
        ("keys", "list"),
        ("keys", "revoke"),
        ("audit",),
        ("media",),
        ("media", "put"),
        ("doctor",),
        ("backup",),
        ("migrate",),
        ("rekey",),
        ("erase-account",),
        ("listen",),
        ("trigger",),
        ("deliveries",),
        ("deliveries", "tail"),
        ("deliveries", "retry"),
        ("verify",),
        ("receiver",),
        ("receiver", "check"),
        ("mcp",),
    ]


@pytest.mark.parametrize("path", [(), *ALL])
def test_every_command_explains_itself_without_settings_or_store(path: tuple[str, ...]) -> None:
    shown = Terminal({"CUEPOST_PROT": "a bad setting"}).words(*path, "--help")

    assert shown.startswith(" ".join(["Usage: cuepost", *path]))
    assert all(option.help for option in _command(path).params if isinstance(option, click.Option))


def test_serve_lists_every_setting() -> None:
    shown = Terminal({}).words("serve", "--help")

    assert all(name in shown for name in VARIABLES)


def test_a_mistyped_command_is_a_usage_error() -> None:
    code, said = Terminal({}).refusal("serv")

    assert code == 2
    assert "No such command 'serv'." in said


def test_the_version_is_printed() -> None:
    assert run({}, "--version").stdout == f"cuepost {cuepost.__version__}\n"


def completed(words: str) -> str:
    environ = environment({}) | {
        "_CUEPOST_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    return subprocess.run(
        command(), env=environ, capture_output=True, text=True, timeout=30, check=True
    ).stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("cuepost keys r", ["revoke"]),
        ("cuepost deliveries t", ["tail"]),
        ("cuepost trigger project.c", ["project.completed", "project.cancelled"]),
        ("cuepost listen 3000 --events project.f", ["project.failed"]),
    ],
)
def test_a_shell_can_complete_commands_and_what_they_take(words: str, offered: list[str]) -> None:
    assert completed(words) == "".join(f"plain,{each}\n" for each in offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_is_told_how_to_complete(shell: str) -> None:
    environ = environment({}) | {"_CUEPOST_COMPLETE": f"{shell}_source"}
    reported = subprocess.run(
        command(), env=environ, capture_output=True, text=True, timeout=30, check=True
    )
    assert f"_CUEPOST_COMPLETE={shell}_complete" in reported.stdout


@contextmanager
def on_a_terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    try:
        yield ours, theirs
    finally:
        os.close(ours)


def shown_on_a_terminal(data_dir: Path, *arguments: str, **more: str) -> str:
    with on_a_terminal() as (ours, theirs):
        environ = environment({"DATA_DIR": str(data_dir)}) | {"TERM": "xterm"} | more
        process = subprocess.Popen(command(*arguments), env=environ, stdout=theirs, stderr=theirs)
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 65_536):
                text += piece
        except OSError:  # how Linux says that the other end was closed
            pass
        assert process.wait(PATIENCE_SECONDS) == 0
        return text.decode()


def test_colours_are_for_terminals_alone_and_can_be_refused(
    empty_sqlite: Terminal, tmp_path: Path
) -> None:
    empty_sqlite.words("accounts", "create")

    assert "\x1b" not in empty_sqlite.words("accounts", "list")
    assert "\x1b[1mID" in shown_on_a_terminal(tmp_path / "data", "accounts", "list")
    plain = shown_on_a_terminal(tmp_path / "data", "accounts", "list", NO_COLOR="1")
    assert "\x1b" not in plain


def test_an_erasure_shows_its_progress_on_a_terminal(
    empty_sqlite: Terminal, tmp_path: Path
) -> None:
    account_id = empty_sqlite.json("accounts", "create")["id"]

    shown = shown_on_a_terminal(tmp_path / "data", "erase-account", account_id, "--yes")

    assert shown.replace("\r\n", "\n") == (
        f"\rErasing … step 1\rErasing … step 2\nAccount {account_id} was erased.\n"
    )


def _command(path: tuple[str, ...]) -> click.Command:
    found: click.Command = cli
    for name in path:
        assert isinstance(found, click.Group)
        found = found.commands[name]
    return found
