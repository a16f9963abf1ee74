"""The output of `cuepost listen`: readable lines, or one JSON object per line."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from cuepost.domain.instants import to_text
from cuepost.interfaces.cli.forwarding import ForwardResult, StreamedEvent
from cuepost.interfaces.cli.output import key_values


@dataclass(frozen=True, slots=True)
class Greeting:
    name: str
    service: str
    target: str
    secret: str
    keys: bool


@dataclass(frozen=True, slots=True)
class Display:
    as_json: bool
    now: Callable[[], datetime]

    def greet(self, greeting: Greeting, events: list[str]) -> None:
        if self.as_json:
            self._line(
                "listening",
                name=greeting.name,
                service=greeting.service,
                target=greeting.target,
                events=events,
                secret=greeting.secret,
            )
            return
        shown = {
            "From": greeting.service,
            "To": greeting.target,
            "Events": ", ".join(events),
            "Signing secret": greeting.secret,
        }
        click.echo(click.style(f"Listening as {greeting.name!r}", bold=True))
        click.echo(key_values(shown))
        click.echo("  This listener keeps the same secret every time.")
        keys = "Press r to resend the last event. " if greeting.keys else ""
        click.echo(f"  {keys}Ctrl-C stops it; the next start resumes where it stopped.\n")

    def attempted(
        self,
        event: StreamedEvent,
        attempt: ForwardResult,
        *,
        again: bool = False,
        next_in: float | None = None,
        given_up: bool = False,
    ) -> None:
        if self.as_json:
            self._line(
                "forwarded",
                position=event["position"],
                eventId=event["id"],
                type=event["type"],
                status=attempt.status,
                latencyMs=round(attempt.seconds * 1_000, 1),
                fault=attempt.fault or None,
                again=again,
                nextInSeconds=next_in,
                givenUp=given_up,
            )
            return
        note = attempt.fault
        if again:
            note = f"{note}  resent".strip()
        if next_in is not None:
            note = f"{note}  next attempt in {next_in:g} s".strip()
        if given_up:
            note = f"{note}  skipped after three attempts; r resends it".strip()
        status = click.style(
            f"{attempt.status or '---':<4}", fg="green" if attempt.succeeded else "red"
        )
        latency = f"{attempt.seconds * 1_000:.0f} ms"
        what = f"{event['type']:<17}  {event['id']}  {note}".rstrip()
        click.echo(f"{self._time()}  {status} {latency:>8}  {what}")

    def receiver_absent(self, event: StreamedEvent, attempt: ForwardResult) -> None:
        words = f"Your receiver is not available ({attempt.fault}); waiting for it."
        self._notice("receiver_absent", words, eventId=event["id"])

    def service_absent(self, words: str) -> None:
        self._notice("service_absent", f"{words} Retrying until it responds.")

    def service_back(self) -> None:
        self._notice("service_back", "The service responds again.")

    def forgotten(self) -> None:
        words = "This listener has expired or was deleted; it starts again with new events."
        self._notice("forgotten", words)

    def ended(self, forwarded: int) -> None:
        words = f"Stopped after {forwarded} forwarded events; the next start resumes here."
        self._notice("ended", words, forwarded=forwarded)

    def _notice(self, kind: str, words: str, **more: Any) -> None:
        if self.as_json:
            self._line(kind, detail=words, **more)
        else:
            click.echo(click.style(f"{self._time()}  {words}", fg="yellow"), err=True)

    def _line(self, kind: str, **content: Any) -> None:
        click.echo(json.dumps({"kind": kind, "at": to_text(self.now()), **content}))

    def _time(self) -> str:
        return f"{self.now().astimezone():%H:%M:%S}"
