"""`cuepost receiver check`: calls a receiver as the service would, and as a forger would."""

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
from cuepost.interfaces.cli.groups import InOrder
from cuepost.interfaces.cli.output import json_option
from cuepost.interfaces.cli.receiver_probe import Finding, Level, Probe
from cuepost.interfaces.cli.runtime import Runtime, Unusable
from cuepost.interfaces.cli.secrets_given import secret_option, secrets_given

MARKS = {
    Level.OK: ("✓", "green"),
    Level.NOTE: ("·", None),
    Level.WARNING: ("!", "yellow"),
    Level.FAILURE: ("✗", "red"),
}
# Developers may look at any receiver of theirs; what the service would refuse is said.
ANYTHING = EgressPolicy(
    networks=(ip_network("0.0.0.0/0"), ip_network("::/0")),
    ports=((1, HIGHEST_PORT),),
    allow_http=True,
)


@click.group(cls=InOrder)
def receiver() -> None:
    """Look at a receiver of yours from outside."""


@receiver.command()
@click.argument("url")
@secret_option
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 120),
    default=15,
    show_default=True,
    help="Seconds that the receiver has for an answer.",
)
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Trust these certificates too.",
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
    """Check a receiver: name, TLS, certificate, redirects, latency, signatures.

    It gets a signed webhook.test event and has to acknowledge it; then one that is an hour old and
    one that is badly signed, and has to refuse both. The secret comes from --secret-file or
    CUEPOST_WEBHOOK_SECRET; without one only the badly signed event is sent.

    \b
    Examples:
      cuepost receiver check https://example.com/cuepost --secret-file secret.txt
      cuepost receiver check http://localhost:3000/cuepost --json

    Exits with 0 when nothing failed (there may be warnings), with 1 when something did.
    """
    probe = Probe(
        url=_parsed(url),
        secrets=_secrets(secret_file),
        now=runtime.now(),
        timeout=timeout,
        context=_context(ca_file),
    )
    findings = []
    for found in chain(_address(url), probe.findings()):
        findings.append(found)
        if not as_json:
            click.echo(_line(found))
    failed = any(found.level is Level.FAILURE for found in findings)
    if as_json:
        content = {"url": probe.url.text, "ok": not failed, "findings": list(map(_json, findings))}
        click.echo(json.dumps(content, ensure_ascii=False))
    sys.exit(1 if failed else 0)


def _parsed(url: str) -> ReceiverUrl:
    try:
        return parse_receiver_url(url, ANYTHING)
    except ReceiverUrlRefused as refusal:
        raise Unusable(str(refusal)) from None


def _address(url: str) -> Iterator[Finding]:
    """Whether an endpoint could be made of it."""
    try:
        parse_receiver_url(url, EgressPolicy())
    except ReceiverUrlRefused as refusal:
        yield Finding("address", Level.WARNING, str(refusal))
    else:
        yield Finding("address", Level.OK, "The address can be registered.")


def _secrets(secret_file: Path | None) -> tuple[SigningSecret, ...]:
    try:
        return tuple(map(SigningSecret.parse, secrets_given(secret_file)))
    except ValueError as error:
        raise Unusable(f"{error}.") from None


def _context(ca_file: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:
            raise Unusable(f"{ca_file} holds no certificates in PEM form: {error}.") from None
    return context


def _line(found: Finding) -> str:
    mark, colour = MARKS[found.level]
    # What a receiver answers must not be able to move the cursor.
    sentence = "".join(each if each.isprintable() else "�" for each in found.sentence)
    return f"{click.style(mark, fg=colour, bold=True)} {found.check:<8}  {sentence}"


def _json(found: Finding) -> dict[str, Any]:
    return {
        "check": found.check,
        "level": found.level.value,
        "sentence": found.sentence,
        "facts": found.facts,
    }
