"""`cuepost verify`: the signature doctor for a captured delivery."""

import re
import sys
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuepost.interfaces.cli.output import json_option, print_result
from cuepost.interfaces.cli.params import Instant
from cuepost.interfaces.cli.runtime import InvalidInput, Runtime
from cuepost.interfaces.cli.secret_input import prompt_for_secret, read_secrets, secret_option

if TYPE_CHECKING:
    from cuepost_receiver.doctor import Diagnosis

FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
STDIN = Path("-")


@click.command()
@click.argument("request_file", metavar="[REQUEST]", type=FILE, required=False)
@click.option("--headers", "headers_file", type=FILE, help="A file with the headers; - is stdin.")
@click.option("--body", "body_file", type=FILE, help="A file with the exact body; - is stdin.")
@click.option("--header", "-H", "more", multiple=True, help="One header, as 'name: value'.")
@secret_option
@click.option(
    "--previous-secret-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with secrets from before a rotation, to detect their use.",
)
@click.option(
    "--computed", help="The signature that your own code computed, to explain the difference."
)
@click.option("--at", type=Instant(), help="When the delivery was received.  [default: now]")
@click.option("--any-age", is_flag=True, help="Do not check the age of the delivery.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0),
    default=300,
    show_default=True,
    help="How many seconds the timestamp may be off.",
)
@json_option
@click.pass_obj
def verify(
    runtime: Runtime,
    *,
    request_file: Path | None,
    headers_file: Path | None,
    body_file: Path | None,
    more: tuple[str, ...],
    secret_file: Path | None,
    previous_secret_file: Path | None,
    computed: str | None,
    at: datetime | None,
    any_age: bool,
    tolerance: float,
    as_json: bool,
) -> None:
    """Check the signature of a delivery, and find out why it does not verify.

    REQUEST is a file with headers, an empty line and the body (- is stdin). Alternatively use
    --headers and --body. The secret is neither sent nor stored. Exits with 0 if the signature is
    valid, with 1 if not.

    \b
    Examples:
      cuepost verify captured-request.txt
      cuepost verify --headers headers.txt --body body.json --any-age
      curl … | cuepost verify --body - -H 'webhook-id: …' -H 'webhook-signature: v1,…' -H …
    """
    headers, body = _request(request_file, headers_file, body_file, more)
    found = import_module("cuepost_receiver.doctor").diagnose(
        headers,
        body,
        read_secrets(secret_file) or prompt_for_secret(),
        now=_verification_time(headers, at or runtime.now(), any_age=any_age),
        tolerance=tolerance,
        retired=read_secrets(previous_secret_file) if previous_secret_file else (),
        computed=computed,
    )
    print_result(as_json, found.as_dict(), _words(found))
    sys.exit(0 if found.is_valid else 1)


def _request(
    request_file: Path | None,
    headers_file: Path | None,
    body_file: Path | None,
    more: tuple[str, ...],
) -> tuple[list[tuple[str, str]], bytes]:
    head, body = _parts(request_file, headers_file, body_file)
    from cuepost_receiver.doctor import read_headers  # noqa: PLC0415  # as above

    headers = read_headers(head.decode("utf-8", "replace"))
    return headers + [pair for each in more for pair in read_headers(each)], body


def _parts(
    request_file: Path | None, headers_file: Path | None, body_file: Path | None
) -> tuple[bytes, bytes]:
    if request_file is not None:
        if headers_file or body_file:
            raise click.UsageError("Give REQUEST, or --headers and --body, not both.")
        return _split(_content(request_file))
    if body_file is None:
        raise click.UsageError("Give REQUEST, or --body and --headers.")
    if headers_file == body_file == STDIN:
        raise click.UsageError("Only one of --headers and --body can be stdin.")
    return _content(headers_file) if headers_file else b"", _content(body_file)


def _split(request: bytes) -> tuple[bytes, bytes]:
    """Split at the first empty line; the rest is the body, byte for byte."""
    head, *rest = re.split(rb"\r?\n\r?\n", request, maxsplit=1)
    return head, rest[0] if rest else b""


def _content(path: Path) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None


def _verification_time(
    headers: list[tuple[str, str]], received: datetime, *, any_age: bool
) -> float:
    """The time to verify at: with `any_age` the timestamp of the delivery itself."""
    stamps = [value for name, value in headers if name.lower() == "webhook-timestamp"]
    if any_age and stamps and re.fullmatch(r"[0-9]{1,15}", stamps[0]):
        return float(stamps[0])
    return received.timestamp()


def _words(found: "Diagnosis") -> str:
    if found.is_valid:
        return click.style(f"✓ {found.sentence}", fg="green")
    head = click.style(f"✗ {found.cause.value}", fg="red", bold=True)
    return f"{head}\n  {found.sentence}\n\n  Fix: {found.remedy}"
