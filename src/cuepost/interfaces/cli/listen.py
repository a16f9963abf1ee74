"""`cuepost listen`: the account's events, forwarded to a receiver on the developer's machine."""

import os
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from urllib.parse import SplitResult

import click

from cuepost.domain.event_catalog import SUBSCRIBABLE
from cuepost.interfaces.cli.forwarding import Forwarder, LocalUrl
from cuepost.interfaces.cli.listen_output import Display, Greeting
from cuepost.interfaces.cli.listen_state import held_identity
from cuepost.interfaces.cli.listening import Listening
from cuepost.interfaces.cli.params import Name
from cuepost.interfaces.cli.runtime import Runtime
from cuepost.interfaces.cli.service_client import ServiceClient, service_options


@click.command()
@click.argument("target", metavar="URL", type=LocalUrl())
@click.option(
    "--events",
    multiple=True,
    type=click.Choice(SUBSCRIBABLE),
    help="Only this type; can be given several times.  [default: all]",
)
@click.option(
    "--name",
    type=Name(),
    help="Under this name it goes on where it stopped.  [default: the URL]",
)
@service_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object to a line.")
def listen(
    target: SplitResult,
    *,
    events: tuple[str, ...],
    name: str | None,
    url: str,
    api_key_file: Path | None,
    as_json: bool,
) -> None:
    """Forward the account's events to URL, a receiver on your own machine.

    The first start begins with what happens from then on. Every later one goes on where the one
    before stopped: what happened meanwhile comes first, in the same order. So nothing is lost
    when your machine sleeps, the service restarts or the connection breaks.

    Each event is signed with the secret that is shown, the way real deliveries are, and counts as
    done when your receiver has answered with 2xx. Another answer, or none within 15 seconds, is
    tried three times and then passed over. While nobody listens at URL, the event waits. After a
    crash the last events may come twice, with the same webhook-id.

    \b
    Examples:
      cuepost listen http://localhost:3000/hook
      cuepost listen 3000 --events project.completed
      cuepost listen http://localhost:3000/hook --json | jq .status

    Needs a key with the scope webhooks:manage. Exits with 0 on Ctrl-C.
    """
    runtime: Runtime = click.get_current_context().obj
    client = ServiceClient.of(url, api_key_file)
    service, shown_target = client.base_url.geturl(), target.geturl()
    display = Display(as_json, runtime.now)
    chosen = name or shown_target[:100]
    with held_identity(service, chosen, runtime.entropy) as identity:
        forwarder = Forwarder(target, identity.secret, runtime.now)
        listening = Listening(client, identity.registered_as, events, forwarder, display)
        keys = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
        greeting = Greeting(chosen, service, shown_target, identity.secret.reveal(), keys)
        _forward_until_interrupted(listening, display, greeting)


def _forward_until_interrupted(listening: Listening, display: Display, greeting: Greeting) -> None:
    try:
        with _ended_by_signals():
            registered = listening.register()
            display.greet(greeting, registered["events"])
            with _keys(listening.again) if greeting.keys else _no_keys():
                listening.run()
    except KeyboardInterrupt:
        listening.leave()
        display.ended(listening.forwarded)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM ends it just as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _no_keys() -> Iterator[None]:
    yield


@contextmanager
def _keys(again: Callable[[], None]) -> Iterator[None]:
    """Single keys, read beside the work; the terminal is left as it was found."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def read() -> None:
        while key := os.read(terminal, 1):
            if key in b"rR":
                again()

    tty.setcbreak(terminal)
    try:
        threading.Thread(target=read, daemon=True, name="keys").start()
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
