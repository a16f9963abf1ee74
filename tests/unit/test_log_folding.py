"""A warning that repeats is written once, then counted; whatever is new is written at once."""

import io
import logging
import sys

import pytest

from cuepost.bootstrap import log_folding
from cuepost.bootstrap.log_folding import INTERVAL_SECONDS, Folding
from cuepost.bootstrap.logs import GroupedLines
from cuepost.log_lines import REQUEST_ID, log_store_error
from cuepost.ports.store import StoreUnavailable

LOST = "event=store_unavailable operation=%s sqlstate=57P03 error=the server starts"


def record(
    text: str, *values: object, level: int = logging.WARNING, at: float = 0.0
) -> logging.LogRecord:
    made = logging.LogRecord("cuepost.rest", level, "", 0, text, values, None)
    made.created = at
    return made


def reported(folding: Folding, now: float) -> list[str]:
    return [each.getMessage() for each in folding.due(now)]


def test_a_line_that_repeats_is_written_once_and_then_counted() -> None:
    folding = Folding()
    held = [folding.holds_back(record(LOST, "reportMilestones")) for _ in range(23_000)]
    assert held.count(False) == 1
    assert not folding.holds_back(record(LOST, "listProjects"))
    assert reported(folding, INTERVAL_SECONDS - 0.1) == []
    [line] = reported(folding, INTERVAL_SECONDS)
    assert line == (
        "event=store_unavailable operation=reportMilestones repeated=22999 sqlstate=57P03 "
        "error=the server starts"
    )


def test_it_is_told_again_in_each_interval_and_forgotten_when_it_has_ended() -> None:
    folding = Folding()
    for _ in range(3):
        folding.holds_back(record(LOST, "claim"))
    assert len(reported(folding, INTERVAL_SECONDS)) == 1
    assert folding.holds_back(record(LOST, "claim", at=INTERVAL_SECONDS))
    assert len(reported(folding, 2 * INTERVAL_SECONDS)) == 1
    assert reported(folding, 3 * INTERVAL_SECONDS) == []
    assert folding.is_idle
    assert not folding.holds_back(record(LOST, "claim", at=3 * INTERVAL_SECONDS))


def test_lines_that_differ_in_their_numbers_alone_are_alike() -> None:
    folding = Folding()
    text = "event=outcomes_not_recorded operation=record waiting=%d sqlstate=- error=away"
    assert [folding.holds_back(record(text, waiting)) for waiting in (1, 7)] == [False, True]
    [line] = reported(folding, INTERVAL_SECONDS)
    assert "waiting=7 repeated=1 sqlstate=-" in line


def test_errors_are_told_with_every_id() -> None:
    folding = Folding()
    error = "event=outcome_set_aside delivery=%s"
    for delivery in ("a", "b"):
        assert not folding.holds_back(record(error, delivery, level=logging.ERROR))


def test_a_clock_that_is_set_back_keeps_nothing_for_ever() -> None:
    folding = Folding()
    for _ in range(2):
        folding.holds_back(record(LOST, "claim", at=1_000_000.0))
    assert len(reported(folding, 5.0)) == 1


def test_more_kinds_than_are_told_apart_are_all_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_folding, "MOST_KINDS", 1)
    folding = Folding()
    lines = [record(LOST, operation) for operation in ("a", "b", "b", "a")]
    assert [folding.holds_back(each) for each in lines] == [False, False, False, True]


def test_the_log_has_the_first_request_at_once_and_the_rest_when_it_ends() -> None:
    stream = io.StringIO()
    handler, logger = GroupedLines(stream), logging.getLogger("cuepost.test_folding")
    logger.propagate = False
    logger.addHandler(handler)
    error = StoreUnavailable("no room on the disk", "53100")
    try:
        for number in range(3):
            given = REQUEST_ID.set(f"r-{number}")
            log_store_error(logger, "store_unavailable", error, "createProject")
            REQUEST_ID.reset(given)
        beginning = "WARNING cuepost.test_folding: event=store_unavailable operation=createProject"
        first = f"{beginning} sqlstate=53100 error=no room on the disk request=r-0"
        assert [line[24:] for line in stream.getvalue().splitlines()] == [first]
    finally:
        logger.removeHandler(handler)
        handler.close()
    rest = f"{beginning} repeated=2 request=r-2 sqlstate=53100 error=no room on the disk"
    assert [line[24:] for line in stream.getvalue().splitlines()] == [first, rest]


def test_a_traceback_is_shown_once() -> None:
    folding = Folding()
    for place in range(2):
        try:
            raise ZeroDivisionError("a bug")
        except ZeroDivisionError:
            raised = record("event=internal_error operation=x", level=logging.ERROR)
            raised.exc_info = sys.exc_info()
        assert folding.holds_back(raised) is bool(place)
    [line] = folding.due(INTERVAL_SECONDS)
    assert (line.getMessage(), line.exc_info) == (
        "event=internal_error operation=x repeated=1",
        None,
    )
