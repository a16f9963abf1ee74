"""`cuepost receiver check`: sends a receiver valid, stale and forged events."""

import json
import ssl
import sys
from collections.abc import Iterator
from ipaddress import ip_network
from itertools import chain
from pathlib import Path
from typing import Any

import click

from cuepost.domain.egress_policy import HIGHEST_PORT, EgressPolicy
from cuepost.domain.receiver_url import ReceiverUrl, ReceiverUrlRefused, parse_receiver_url
from cuepost.domain.signing import SigningSecret
from cuepost.interfaces.cli.groups import OrderedGroup
from cuepost.interfaces.cli.output import json_option
from cuepost.interfaces.cli.receiver_probe import Probe, ProbeLevel, ProbeResult
from cuepost.interfaces.cli.runtime import InvalidInput, Runtime
from cuepost.interfaces.cli.secret_input import read_secrets, secret_option

MARKS = {
    ProbeLevel.OK: ("✓", "green"),
    ProbeLevel.NOTE: ("·", None),
    ProbeLevel.WARNING: ("!", "yellow"),
    ProbeLevel.FAILURE: ("✗", "red"),
}
# Developers may check any receiver; the result says if the service would refuse its address.
ANY_DESTINATION = EgressPolicy(
    networks=(ip_network("0.0.0.0/0"), ip_network("::/0")),
    ports=((1, HIGHEST_PORT),),
    allow_http=True,
)


@click.group(cls=OrderedGroup)
def receiver() -> None:
    """Check a receiver."""


@receiver.command()
@click.argument("url")
@secret_option
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 120),
    default=15,
    show_default=True,
    help="Seconds to wait for a response.",
)
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also trust the CA certificates in this PEM file.",
)
@json_option
@click.pass_obj
def check(
    runtime: Runtime,
    url: str,
    *,
    secret_file: Path | None,
    timeout: float,
    ca_file: Path | None,
    as_json: bool,
) -> None:
    """Check a receiver: DNS, TLS, certificate, redirects, latency, signatures.

    The command sends a signed webhook.test event, which the receiver has to accept; then an event
    that is an hour old and one with a wrong signature, which it has to reject. The secret is read
    from --secret-file or CUEPOST_WEBHOOK_SECRET; without it only the last event is sent.

    \b
    Examples:
      cuepost receiver check https://example.com/cuepost --secret-file secret.txt
      cuepost receiver check http://localhost:3000/cuepost --json

    Exits with 0 if no check failed (there may be warnings), with 1 if one did.
    """
    probe = Probe(
        url=_parsed(url),
        secrets=_secrets(secret_file),
        now=runtime.now(),
        timeout=timeout,
        context=_context(ca_file),
    )
    results = []
    for result in chain(_address(url), probe.run()):
        results.append(result)
        if not as_json:
            click.echo(_line(result))
    failed = any(result.level is ProbeLevel.FAILURE for result in results)
    if as_json:
        content = {"url": probe.url.text, "ok": not failed, "findings": list(map(_json, results))}
        click.echo(json.dumps(content, ensure_ascii=False))
    sys.exit(1 if failed else 0)


def _parsed(url: str) -> ReceiverUrl:
    try:
        return parse_receiver_url(url, ANY_DESTINATION)
    except ReceiverUrlRefused as refusal:
        raise InvalidInput(str(refusal)) from None


def _address(url: str) -> Iterator[ProbeResult]:
    """Whether the URL can be registered as an endpoint."""
    try:
        parse_receiver_url(url, EgressPolicy())
    except ReceiverUrlRefused as refusal:
        yield ProbeResult("address", ProbeLevel.WARNING, str(refusal))
    else:
        yield ProbeResult("address", ProbeLevel.OK, "The URL can be registered.")


def _secrets(secret_file: Path | None) -> tuple[SigningSecret, ...]:
    try:
        return tuple(map(SigningSecret.parse, read_secrets(secret_file)))
    except ValueError as error:
        raise InvalidInput(f"{error}.") from None


def _context(ca_file: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:
            raise InvalidInput(f"{ca_file} contains no PEM certificates: {error}.") from None
    return context


def _line(result: ProbeResult) -> str:
    mark, colour = MARKS[result.level]
    # A response must not be able to move the cursor of the terminal.
    sentence = "".join(each if each.isprintable() else "�" for each in result.sentence)
    return f"{click.style(mark, fg=colour, bold=True)} {result.check:<8}  {sentence}"


def _json(result: ProbeResult) -> dict[str, Any]:
    return {
        "check": result.check,
        "level": result.level.value,
        "sentence": result.sentence,
        "facts": result.facts,
    }
