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
from cuepost.interfaces.cli.output import json_option, print_result
from cuepost.interfaces.cli.runtime import CannotRun, CommandContext, Work, operator, use

T = TypeVar("T")

STANDARD = "-"
SETTLE_SECONDS = 0.2
# Enough for the lease of a dead worker to expire, and for an attempt of another worker to end.
MARGIN_SECONDS = 30.0
COMPRESSION = 6


@click.command("export")
@click.argument("account_id", type=click.UUID)
@click.option("--to", "file", required=True, help="A new file, or - for standard output.")
@json_option
def export(account_id: UUID, file: str, as_json: bool) -> None:
    """Export an account to a file, to move it to another database.

    From now on the account is read-only: changes and milestones get 503 and have to be repeated
    later. Deliveries in flight finish, the others wait. The file contains everything of the account
    except exported media files. Secrets in it stay encrypted with the master key. The command can
    be interrupted and run again.

    \b
    A move, from one database to another:
      cuepost accounts export ACCOUNT --to account.gz     at the old one
      cuepost accounts import account.gz                  at the new one
      cuepost accounts finish-move ACCOUNT                at the old one: prints a code
      cuepost accounts release ACCOUNT CODE               at the new one: the account is live
    """
    if file == STANDARD and as_json:
        raise click.UsageError("--json cannot be used with --to -: both write to standard output.")

    async def work(context: CommandContext) -> int:
        moving = context.service.maintenance.moving
        await moving.start(operator(), account_id)
        await _settle(context, account_id)
        with _new_file(file) as target:
            return await moving.export(account_id, target.write)

    rows = _run(work, account_id)
    content = {"accountId": str(account_id), "rows": rows, "file": file}
    words = (
        f"Exported account {account_id}: {rows} rows. It stays read-only until "
        "'finish-move' or 'abort-move'."
    )
    if file == STANDARD:
        click.echo(words, err=True)
    else:
        print_result(as_json, content, words)


@click.command("import")
@click.argument("file")
@json_option
def import_account(file: str, as_json: bool) -> None:
    """Import an account from a file of 'accounts export', or from standard input (-).

    The database needs the same schema version as the old one. CUEPOST_MASTER_KEY has to contain the
    master key of the old database; if the databases use different keys, put the old one behind the
    first and run 'cuepost rekey' afterwards. The account is not live before it is released. The
    command can be interrupted and run again.
    """

    async def work(context: CommandContext) -> Account:
        with _existing_file(file) as source:
            return await context.service.maintenance.moving.load(source)

    account = _run(work)
    print_result(
        as_json,
        {"accountId": str(account.id), "name": account.name},
        f"Imported account {account.id}. It is not live yet.\n"
        f"At its old database: cuepost accounts finish-move {account.id}\n"
        f"Then here:           cuepost accounts release {account.id} CODE",
    )


@click.command("finish-move")
@click.argument("account_id", type=click.UUID)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def finish_move(account_id: UUID, yes: bool, as_json: bool) -> None:
    """Erase an exported account here, and print the code that releases its copy.

    Run this after 'accounts import' has succeeded at the new database. From then on its API keys
    get 410 here, and its milestones the reason account_moved. Exported media files are kept.
    """
    if not yes:
        _confirm(account_id, "All data of the account in this database will be erased.")

    async def work(context: CommandContext) -> str:
        code = await context.service.maintenance.moving.finish(operator(), account_id)
        while not await context.service.maintenance.moving.forget_step(account_id):
            pass
        return code

    code = _run(work, account_id)
    words = f"Account {account_id} has moved. Release its copy:\n\n"
    words += f"  cuepost accounts release {account_id} {code}\n"
    print_result(as_json, {"accountId": str(account_id), "code": code}, words)


@click.command("release")
@click.argument("account_id", type=click.UUID)
@click.argument("code")
@json_option
def release(account_id: UUID, code: str, as_json: bool) -> None:
    """Make an imported account live; CODE was printed by 'finish-move'."""
    _run(
        lambda context: context.service.maintenance.moving.release(operator(), account_id, code),
        account_id,
    )
    content = {"accountId": str(account_id), "live": True}
    print_result(as_json, content, f"Account {account_id} is live.")


@click.command("abort-move")
@click.argument("account_id", type=click.UUID)
@json_option
def abort_move(account_id: UUID, as_json: bool) -> None:
    """Make an exported account live again, or remove an imported one.

    Files that were exported before cannot be released any more.
    """
    was = _run(
        lambda context: context.service.maintenance.moving.abort(operator(), account_id), account_id
    )
    is_live = was is AccountState.LEAVING
    words = "is live again" if is_live else "was removed from this database"
    content = {"accountId": str(account_id), "live": is_live}
    print_result(as_json, content, f"Account {account_id} {words}.")


COMMANDS = (export, import_account, finish_move, release, abort_move)


def _run(work: Work[T], account_id: UUID | None = None) -> T:
    missing = f"There is no account {account_id}; 'cuepost accounts list' lists all accounts."
    return use(work, missing=missing)


async def _settle(context: CommandContext, account_id: UUID) -> None:
    clock = context.service.access.clock
    deadline = clock.monotonic() + context.settings.attempt_timeout + MARGIN_SECONDS
    while left := await context.service.maintenance.moving.settle(account_id):
        if clock.monotonic() > deadline:
            raise CannotRun(
                f"{left} deliveries are still in flight. Run the command again, or make the "
                f"account live again: cuepost accounts abort-move {account_id}"
            )
        await clock.wait(SETTLE_SECONDS)


@contextmanager
def _new_file(file: str) -> Iterator[gzip.GzipFile]:
    """Create the file atomically: it gets its name once it is complete and synced to disk."""
    if file == STANDARD:
        with gzip.GzipFile(fileobj=sys.stdout.buffer, mode="wb", compresslevel=COMPRESSION) as out:
            yield out
        sys.stdout.buffer.flush()
        return
    path, part = Path(file), Path(f"{file}.part")
    if path.exists():
        raise CannotRun(f"{path} already exists; choose another name.")
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
    """The lines of the file; the import detects a truncated file by its missing end."""
    try:
        with gzip.GzipFile(fileobj=raw, mode="rb") as source:
            yield from source
    except (gzip.BadGzipFile, zlib.error) as error:
        raise CannotRun("This file was not written by 'cuepost accounts export'.") from error
    except EOFError:
        return


def _confirm(account_id: UUID, what: str) -> None:
    click.echo(what, err=True)
    typed = click.prompt("Type the id of the account to continue", err=True, prompt_suffix=": ")
    if typed.strip() != str(account_id):
        raise CannotRun("This is not the id of the account; nothing was changed.")
