"""Log lines as text, on a terminal and as JSON."""

import io
import json
import logging
import sys
from typing import Any

import pytest

from cuepost.bootstrap.log_formats import JsonLines, TerminalLines
from cuepost.bootstrap.logs import QuickFormatter, formatter_of
from cuepost.log_lines import REQUEST_ID

ATTEMPT = (
    "account=a-1 webhook=w-1 delivery=d-1 event=e-1 type=project.completed budget=1 number=2 "
    "trigger=automatic outcome=timeout status=- ms=15000.0 dns_ms=- connect_ms=1.2 tls_ms=2.5 "
    "first_byte_ms=- verdict=failed due_again=-"
)
CREATED = 1_767_323_045.042


def record(message: str, level: int = logging.INFO, name: str = "cuepost.rest") -> Any:
    made = logging.LogRecord(name, level, "here.py", 1, message, (), None)
    made.created, made.msecs = CREATED, 42.0
    return made


def as_json(made: logging.LogRecord) -> list[dict[str, Any]]:
    return [json.loads(line) for line in JsonLines().format(made).split("\n")]


def test_the_pairs_of_a_line_are_members() -> None:
    [found] = as_json(record("event=request operation=listProjects status=200 ms=0.8 caller=-"))
    assert found == {
        "time": "2026-01-02T03:04:05.042Z",
        "level": "info",
        "logger": "cuepost.rest",
        "event": "request",
        "operation": "listProjects",
        "status": 200,
        "ms": 0.8,
        "caller": None,
    }


def test_an_attempt_has_a_name_and_ids_that_cannot_be_taken_for_it() -> None:
    [found] = as_json(record(ATTEMPT, name="cuepost.attempt"))
    assert (
        found
        | {
            "event": "attempt",
            "eventId": "e-1",
            "eventType": "project.completed",
            "deliveryId": "d-1",
            "webhookId": "w-1",
            "accountId": "a-1",
            "number": 2,
            "outcome": "timeout",
            "status": None,
            "tls_ms": 2.5,
            "due_again": None,
        }
        == found
    )


def test_each_line_of_a_record_is_an_object() -> None:
    found = as_json(record("event=one\nevent=two"))
    assert [each["event"] for each in found] == ["one", "two"]


@pytest.mark.parametrize(
    ("line", "members"),
    [
        ("could not sweep: gone", {"message": "could not sweep: gone"}),
        ("event=x error=no route to host", {"event": "x", "error": "no route to host"}),
        ('event=x reason="two words" in_flight=3', {"reason": "two words", "in_flight": "3"}),
        ("event=x cause=Timeout it took long", {"cause": "Timeout", "message": "it took long"}),
        ("event=x status=odd", {"status": "odd"}),
        ("", {}),
    ],
)
def test_what_is_no_pair_is_the_message(line: str, members: dict[str, str]) -> None:
    [found] = as_json(record(line))
    assert found | members == found
    assert ("message" in found) == ("message" in members)


def test_an_exception_is_one_member() -> None:
    made = record("event=internal_error", logging.ERROR)
    try:
        raise ValueError("broken\nin two")
    except ValueError:
        made.exc_info = sys.exc_info()
    [found] = as_json(made)
    assert found["level"] == "error"
    assert found["exception"].endswith("ValueError: broken\nin two")


def test_text_from_outside_cannot_end_a_line_of_json() -> None:
    [found] = as_json(record('event=x error="}{\r\x00\u2028'))
    assert found["error"] == '"}{\r\x00\u2028'


def test_a_terminal_shows_what_a_person_needs() -> None:
    line = TerminalLines().format(record(ATTEMPT, name="cuepost.attempt"))
    _, _, rest = line.partition(" ")
    assert rest == (
        "attempt: delivery=d-1 event=e-1 type=project.completed number=2 outcome=timeout "
        "ms=15000.0 verdict=failed"
    )


def test_a_terminal_shows_levels_other_than_info_and_exceptions() -> None:
    made = record("event=internal_error", logging.ERROR)
    try:
        raise ValueError("broken")
    except ValueError:
        made.exc_info = sys.exc_info()
    first, *_, last = TerminalLines().format(made).split("\n")
    assert first.endswith(" ERROR rest: event=internal_error")
    assert last.endswith(" ERROR rest: ValueError: broken")


@pytest.mark.parametrize("form", [QuickFormatter, TerminalLines])
def test_text_names_the_request_that_is_being_answered(form: type[logging.Formatter]) -> None:
    token = REQUEST_ID.set("r-1")
    try:
        line = form().format(record("event=store_unavailable", logging.WARNING))
        broken = record("event=internal_error", logging.ERROR)
        broken.exc_info = (ValueError, ValueError("broken"), None)
        traced = form().format(broken)
    finally:
        REQUEST_ID.reset(token)
    assert line.endswith("event=store_unavailable request=r-1")
    assert "request=r-1" in traced


def test_the_format_follows_the_setting_and_the_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert isinstance(formatter_of("text", io.StringIO()), QuickFormatter)
    assert isinstance(formatter_of("text", Terminal()), TerminalLines)
    assert isinstance(formatter_of("json", Terminal()), JsonLines)
