"""`cuepost demo`: the whole story in one terminal, each step of it checked."""

import signal
import sys
import time
from contextlib import ExitStack

import click

import cuepost
from cuepost.interfaces.cli.demo_receiver import running_receiver
from cuepost.interfaces.cli.demo_service import DemoFailed, running_service
from cuepost.interfaces.cli.demo_story import Story

INDENT = "     "
COLOURS = {"✓": "green", "→": "cyan", "✗": "red"}
STEPS = 9


@click.command()
def demo() -> None:
    """See everything happen, in about ten seconds.

    Starts a service and a receiver on this machine, walks projects through their milestones and
    shows each delivery arrive: signed, tried again, under a rotated secret, held back, sent by
    hand; and the files of an export, fetched through fresh links. Everything is in a temporary
    folder and is gone afterwards; nothing of yours is touched.

    Exits with 0 only if every step held.
    """
    started = time.monotonic()
    try:
        with ExitStack() as stage:
            # Ended by a signal, it still takes the service and the folder away.
            previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
            stage.callback(signal.signal, signal.SIGTERM, previous)
            _tell(stage)
    except DemoFailed as failure:
        _say(f"✗ {failure}")
        click.echo("\nThe demo failed at this step.")
        sys.exit(1)
    click.echo(click.style(f"\nEvery step held ({time.monotonic() - started:.0f} s).", bold=True))
    click.echo("Your own service: cuepost serve")


def _tell(stage: ExitStack) -> None:
    click.echo(click.style(f"cuepost {cuepost.__version__}, a demonstration", bold=True))
    click.echo("All of it runs on this machine, in a temporary folder that goes away at the end.")
    _head(1, "Start a service and a receiver")
    receiver = stage.enter_context(running_receiver())
    service = stage.enter_context(running_service(receiver.port))
    _say(f"The service is at {service.url}, the receiver at {receiver.url}")
    for number, (title, step) in enumerate(Story(service, receiver, _say).steps(), start=2):
        _head(number, title)
        step()


def _head(number: int, title: str) -> None:
    click.echo(click.style(f"\n{number}/{STEPS}  {title}", bold=True))


def _say(line: str) -> None:
    colour = COLOURS.get(line[0])
    click.echo(INDENT + (click.style(line, fg=colour) if colour else line))
