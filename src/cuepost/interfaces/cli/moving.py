"""`cuepost accounts export`, `import`, `finish-move`, `release` and `abort-move`."""

import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar
from uuid import UUID

import click

from cuepost.domain.access import Account, AccountState
from cuepost.interfaces.cli.output import json_option, tell
from cuepost.interfaces.cli.runtime import CannotRun, Opened, Work, operator, use

T = TypeVar("T")

STANDARD = "-"
SETTLE_SECONDS = 0.2
# A lease of a worker that has died runs out, and an attempt of another one ends.
MARGIN_SECONDS = 30.0
COMPRESSION = 6


@click.command("export")
@click.argument("account_id", type=click.UUID)
@click.option("--to", "file", required=True, help="A new file, or - for standard output.")
@json_option
def export(account_id: UUID, file: str, as_json: bool) -> None:
    """Write an account into a file, to move it to another database.

    From here on the account can be read and not be changed: requests are answered with 503 and
    are to be repeated, milestones too. Deliveries that are in flight end, the others wait. The
    file has everything of the account but the files of its exports, with secrets as they are
    stored: sealed under the master key. The command can be interrupted and started again.

    \b
    A move, from one database to another:
      cuepost accounts export ACCOUNT --to account.gz     at the old one
      cuepost accounts import account.gz                  at the new one
      cuepost accounts finish-move ACCOUNT                at the old one: prints a code
      cuepost accounts release ACCOUNT CODE               at the new one: it is live again
    """
    if file == STANDARD and as_json:
        raise click.UsageError("--json and the file would both go to standard output.")

    async def work(opened: Opened) -> int:
        moving = opened.service.maintenance.moving
        await moving.start(operator(), account_id)
        await _settle(opened, account_id)
        with _new_file(file) as target:
            return await moving.export(account_id, target.write)

    rows = _moved(work, account_id)
    content = {"accountId": str(account_id), "rows": rows, "file": file}
    words = (
        f"Exported account {account_id}: {rows} rows. It stays as it is until "
        "'finish-move' or 'abort-move'."
    )
    if file == STANDARD:
        click.echo(words, err=True)
    else:
        tell(as_json, content, words)


@click.command("import")
@click.argument("file")
@json_option
def load(file: str, as_json: bool) -> None:
    """Load an account from a file of 'accounts export', or from standard input (-).

    The database needs the same schema as the one it comes from, and CUEPOST_MASTER_KEY the key
    that seals its secrets: put it behind the first one and run 'cuepost rekey' later, if it is to
    be another. The account is not live before it is released. The command can be interrupted and
    started again.
    """

    async def work(opened: Opened) -> Account:
        with _existing_file(file) as source:
            return await opened.service.maintenance.moving.load(source)

    account = _moved(work)
    tell(
        as_json,
        {"accountId": str(account.id), "name": account.name},
        f"Loaded account {account.id}. It is not live yet.\n"
        f"At its old database: cuepost accounts finish-move {account.id}\n"
        f"Then here:           cuepost accounts release {account.id} CODE",
    )


@click.command("finish-move")
@click.argument("account_id", type=click.UUID)
@click.option("--yes", is_flag=True, help="Do not ask to type the account's id.")
@json_option
def finish_move(account_id: UUID, yes: bool, as_json: bool) -> None:
    """End an account that was exported, and print the code that releases its copy.

    Do it when 'accounts import' has loaded it elsewhere: its rows here are erased. What is left
    answers its keys with 410, and its milestones with the reason account_moved. The files of its
    exports stay.
    """
    if not yes:
        _confirm(account_id, "Everything of the account is erased here.")

    async def work(opened: Opened) -> str:
        code = await opened.service.maintenance.moving.finish(operator(), account_id)
        while not await opened.service.maintenance.moving.forget_step(account_id):
            pass
        return code

    code = _moved(work, account_id)
    words = f"Account {account_id} has moved. Release its copy:\n\n"
    words += f"  cuepost accounts release {account_id} {code}\n"
    tell(as_json, {"accountId": str(account_id), "code": code}, words)


@click.command("release")
@click.argument("account_id", type=click.UUID)
@click.argument("code")
@json_option
def release(account_id: UUID, code: str, as_json: bool) -> None:
    """Make an account live that was loaded; CODE is what 'finish-move' has printed."""
    _moved(
        lambda opened: opened.service.maintenance.moving.release(operator(), account_id, code),
        account_id,
    )
    content = {"accountId": str(account_id), "live": True}
    tell(as_json, content, f"Account {account_id} is live.")


@click.command("abort-move")
@click.argument("account_id", type=click.UUID)
@json_option
def abort_move(account_id: UUID, as_json: bool) -> None:
    """Make an account live again that was exported, or remove one that was loaded.

    No file of it that was exported before can be released from then on.
    """
    was = _moved(
        lambda opened: opened.service.maintenance.moving.abort(operator(), account_id), account_id
    )
    is_live = was is AccountState.LEAVING
    words = "is live again" if is_live else "was removed; it is live at its old database or nowhere"
    content = {"accountId": str(account_id), "live": is_live}
    tell(as_json, content, f"Account {account_id} {words}.")


COMMANDS = (export, load, finish_move, release, abort_move)


def _moved(work: Work[T], account_id: UUID | None = None) -> T:
    missing = f"There is no account {account_id}; 'cuepost accounts list' shows them all."
    return use(work, missing=missing)


async def _settle(opened: Opened, account_id: UUID) -> None:
    clock = opened.service.access.clock
    deadline = clock.monotonic() + opened.settings.attempt_timeout + MARGIN_SECONDS
    while left := await opened.service.maintenance.moving.settle(account_id):
        if clock.monotonic() > deadline:
            raise CannotRun(
                f"{left} deliveries are still with a worker. Run the command again, or make the "
                f"account live again: cuepost accounts abort-move {account_id}"
            )
        await clock.wait(SETTLE_SECONDS)


@contextmanager
def _new_file(file: str) -> Iterator[gzip.GzipFile]:
    """It appears under its name when it is complete and on the disk."""
    if file == STANDARD:
        with gzip.GzipFile(fileobj=sys.stdout.buffer, mode="wb", compresslevel=COMPRESSION) as out:
            yield out
        sys.stdout.buffer.flush()
        return
    path, part = Path(file), Path(f"{file}.part")
    if path.exists():
        raise CannotRun(f"{path} is there already; name a new file.")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as raw:
        with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=COMPRESSION) as out:
            yield out
        raw.flush()
        os.fsync(raw.fileno())
    part.rename(path)


@contextmanager
def _existing_file(file: str) -> Iterator[Iterator[bytes]]:
    if file == STANDARD:
        yield _lines(sys.stdin.buffer)
        return
    with Path(file).open("rb") as raw:
        yield _lines(raw)


def _lines(raw: IO[bytes]) -> Iterator[bytes]:
    """What is cut off ends early, and is then found not to be complete."""
    try:
        with gzip.GzipFile(fileobj=raw, mode="rb") as source:
            yield from source
    except (gzip.BadGzipFile, zlib.error) as error:
        raise CannotRun("This is not a file of 'cuepost accounts export'.") from error
    except EOFError:
        return


def _confirm(account_id: UUID, what: str) -> None:
    click.echo(what, err=True)
    typed = click.prompt("Type the account's id to go on", err=True, prompt_suffix=": ")
    if typed.strip() != str(account_id):
        raise CannotRun("That is not the account's id; nothing was changed.")
