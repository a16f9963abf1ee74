"""`cuepost verify`: the signature doctor for a delivery that somebody has kept."""

import re
import sys
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuepost.interfaces.cli.output import json_option, tell
from cuepost.interfaces.cli.params import Instant
from cuepost.interfaces.cli.runtime import Runtime, Unusable
from cuepost.interfaces.cli.secrets_given import ask_for_secret, secret_option, secrets_given

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
    help="A file with secrets from before a rotation, to recognise them.",
)
@click.option("--computed", help="The signature that your own code came to, to explain it.")
@click.option("--at", type=Instant(), help="When it was received.  [default: now]")
@click.option("--any-age", is_flag=True, help="Do not look at how old the delivery is.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0),
    default=300,
    show_default=True,
    help="How many seconds the clocks may differ.",
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
    """Say whether a delivery's signature is valid, and if not, why.

    REQUEST is a file with headers, an empty line and the body (- for stdin); or give --headers and
    --body apart. The secret is sent nowhere and kept nowhere. Exits with 0 if valid, 1 if not.

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
        secrets_given(secret_file) or ask_for_secret(),
        now=_looked_at(headers, at or runtime.now(), any_age=any_age),
        tolerance=tolerance,
        retired=secrets_given(previous_secret_file) if previous_secret_file else (),
        computed=computed,
    )
    tell(as_json, found.as_dict(), _words(found))
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
    """At the first empty line; everything behind it is the body, byte for byte."""
    head, *rest = re.split(rb"\r?\n\r?\n", request, maxsplit=1)
    return head, rest[0] if rest else b""


def _content(path: Path) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}.") from None


def _looked_at(headers: list[tuple[str, str]], received: datetime, *, any_age: bool) -> float:
    """Where its age does not matter, at the moment that it names itself."""
    stamps = [value for name, value in headers if name.lower() == "webhook-timestamp"]
    if any_age and stamps and re.fullmatch(r"[0-9]{1,15}", stamps[0]):
        return float(stamps[0])
    return received.timestamp()


def _words(found: "Diagnosis") -> str:
    if found.is_valid:
        return click.style(f"✓ {found.sentence}", fg="green")
    head = click.style(f"✗ {found.cause.value}", fg="red", bold=True)
    return f"{head}\n  {found.sentence}\n\n  To fix it: {found.remedy}"
