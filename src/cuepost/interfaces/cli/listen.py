"""`cuepost listen`: forwards the account's events to a receiver on the developer's machine."""

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
from cuepost.interfaces.cli.listen_state import locked_identity
from cuepost.interfaces.cli.listening import ListenLoop
from cuepost.interfaces.cli.params import Name
from cuepost.interfaces.cli.runtime import Runtime
from cuepost.interfaces.cli.service_client import ServiceClient, service_options


@click.command()
@click.argument("target", metavar="URL", type=LocalUrl())
@click.option(
    "--events",
    multiple=True,
    type=click.Choice(SUBSCRIBABLE),
    help="Only events of this type; can be repeated.  [default: all]",
)
@click.option(
    "--name",
    type=Name(),
    help="The name of the listener; the same name resumes.  [default: the URL]",
)
@service_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
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

    The first start forwards events that happen from then on. Every later start resumes where the
    previous one stopped and first forwards the events in between, in order. No event is lost
    when your machine sleeps, the service restarts or the connection drops.

    Events are signed like real deliveries, with the secret that is shown. An event is done when
    your receiver responds with 2xx. After another response, or none within 15 seconds, it is
    retried; after three attempts it is skipped. While connections to URL are refused, events wait.
    After a crash the last events may be sent twice, with the same webhook-id.

    \b
    Examples:
      cuepost listen http://localhost:3000/hook
      cuepost listen 3000 --events project.completed
      cuepost listen http://localhost:3000/hook --json | jq .status

    The API key needs the scope webhooks:manage. Exits with 0 on Ctrl-C.
    """
    runtime: Runtime = click.get_current_context().obj
    client = ServiceClient.of(url, api_key_file)
    service, shown_target = client.base_url.geturl(), target.geturl()
    display = Display(as_json, runtime.now)
    chosen = name or shown_target[:100]
    with locked_identity(service, chosen, runtime.entropy) as identity:
        forwarder = Forwarder(target, identity.secret, runtime.now)
        listening = ListenLoop(client, identity.registered_as, events, forwarder, display)
        keys = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
        greeting = Greeting(chosen, service, shown_target, identity.secret.reveal(), keys)
        _forward_until_interrupted(listening, display, greeting)


def _forward_until_interrupted(listening: ListenLoop, display: Display, greeting: Greeting) -> None:
    try:
        with _sigterm_interrupts():
            registered = listening.register()
            display.greet(greeting, registered["events"])
            with _keys(listening.resend_last) if greeting.keys else _no_keys():
                listening.run()
    except KeyboardInterrupt:
        listening.acknowledge_on_exit()
        display.ended(listening.forwarded)


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C."""

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
def _keys(resend_last: Callable[[], None]) -> Iterator[None]:
    """Read single keys in a thread; restores the terminal afterwards."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def read() -> None:
        while key := os.read(terminal, 1):
            if key in b"rR":
                resend_last()

    tty.setcbreak(terminal)
    try:
        threading.Thread(target=read, daemon=True, name="keys").start()
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
