"""`cuepost demo`: shows the service at work in one terminal, and checks every step."""

import signal
import sys
import time
from contextlib import ExitStack

import click

import cuepost
from cuepost.interfaces.cli.demo_receiver import running_receiver
from cuepost.interfaces.cli.demo_service import DemoFailed, running_service
from cuepost.interfaces.cli.demo_steps import DemoSteps

INDENT = "     "
COLOURS = {"✓": "green", "→": "cyan", "✗": "red"}
STEPS = 9


@click.command()
def demo() -> None:
    """See the whole service at work, in about ten seconds.

    The demo starts a service and a receiver on this machine, takes projects through their
    milestones and shows every delivery arrive: signed, retried, signed with a rotated secret,
    cancelled while the endpoint is disabled, and retried by hand. It also downloads the files of
    an export. Everything is kept in a temporary folder and removed afterwards.

    Exits with 0 only if every step succeeded.
    """
    started = time.monotonic()
    try:
        with ExitStack() as resources:
            # SIGTERM must also stop the service and remove the folder.
            previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
            resources.callback(signal.signal, signal.SIGTERM, previous)
            _run_steps(resources)
    except DemoFailed as failure:
        _print_line(f"✗ {failure}")
        click.echo("\nThe demo failed at this step.")
        sys.exit(1)
    click.echo(
        click.style(f"\nEvery step succeeded ({time.monotonic() - started:.0f} s).", bold=True)
    )
    click.echo("To start your own service: cuepost serve")


def _run_steps(resources: ExitStack) -> None:
    click.echo(click.style(f"cuepost {cuepost.__version__} demo", bold=True))
    click.echo("Everything runs on this machine, in a temporary folder that is removed at the end.")
    _print_heading(1, "Start a service and a receiver")
    receiver = resources.enter_context(running_receiver())
    service = resources.enter_context(running_service(receiver.port))
    _print_line(f"The service is at {service.url}, the receiver at {receiver.url}")
    for number, (title, step) in enumerate(
        DemoSteps(service, receiver, _print_line).steps(), start=2
    ):
        _print_heading(number, title)
        step()


def _print_heading(number: int, title: str) -> None:
    click.echo(click.style(f"\n{number}/{STEPS}  {title}", bold=True))


def _print_line(line: str) -> None:
    colour = COLOURS.get(line[0])
    click.echo(INDENT + (click.style(line, fg=colour) if colour else line))
