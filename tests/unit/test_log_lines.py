"""Log lines are written in groups: none is lost or overtaken, and trouble is told at once."""

import io
import logging
import sys
import threading
from collections.abc import Iterator

import pytest

from cuepost.bootstrap import logs
from cuepost.bootstrap.logs import FORMAT, LARGEST_GROUP, GroupedLines, QuickFormatter, logged

PATIENCE_SECONDS = 10


class Stream(io.StringIO):
    """Knows each write, and lets others wait for the first."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []
        self.written = threading.Event()

    def write(self, text: str) -> int:
        self.writes.append(text)
        self.written.set()
        return len(text)


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def lines(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupedLines]:
    """Nothing is written because time has passed."""
    monkeypatch.setattr(logs, "LONGEST_WAIT_SECONDS", 3_600)
    handler = GroupedLines(stream)
    yield handler
    handler.close()


def record(message: str, level: int = logging.INFO, *args: object) -> logging.LogRecord:
    return logging.LogRecord("cuepost.rest", level, "here.py", 1, message, args, None)


def messages(text: str) -> list[str]:
    return [line.partition(": ")[2] for line in text.splitlines()]


def test_a_line_looks_as_the_library_would_write_it() -> None:
    made = record("event=%s count=%d", logging.WARNING, "request", 3)
    for created in (1_767_323_045.0421, 1_767_323_045.9, 1_767_323_046.0):
        made.created, made.msecs = created, int(created % 1 * 1_000) + 0.0
        assert QuickFormatter(FORMAT).format(made) == logging.Formatter(FORMAT).format(made)


def test_each_line_of_a_message_has_its_own_beginning() -> None:
    first, second = QuickFormatter(FORMAT).format(record("one\ntwo")).split("\n")
    beginning = first.removesuffix("one")
    assert beginning.endswith(" INFO cuepost.rest: ")
    assert second == f"{beginning}two"


def test_an_exception_is_shown_with_its_traceback() -> None:
    made = record("event=internal_error")
    try:
        raise ValueError("broken")
    except ValueError:
        made.exc_info = sys.exc_info()
    text = QuickFormatter(FORMAT).format(made)
    assert text.endswith("ValueError: broken")
    assert text == logging.Formatter(FORMAT).format(made)


def test_a_warning_is_written_at_once_after_the_lines_before_it(
    stream: Stream, lines: GroupedLines
) -> None:
    lines.handle(record("one"))
    lines.handle(record("two"))
    assert stream.writes == []
    lines.handle(record("trouble", logging.WARNING))
    lines.handle(record("three"))
    [written] = stream.writes
    assert messages(written) == ["one", "two", "trouble"]


def test_information_is_never_held_back(stream: Stream, lines: GroupedLines) -> None:
    for _ in range(2):
        lines.handle(record("event=request"))
        lines.handle(record("trouble", logging.WARNING))
    lines.flush()
    assert messages("".join(stream.writes)) == ["event=request", "trouble", "event=request"]


def test_a_large_group_is_written_at_once(stream: Stream, lines: GroupedLines) -> None:
    lines.handle(record("x" * (LARGEST_GROUP // 2)))
    assert stream.writes == []
    lines.handle(record("x" * (LARGEST_GROUP // 2)))
    assert len(stream.writes) == 1


def test_a_line_is_written_after_a_while_without_another(stream: Stream) -> None:
    handler = GroupedLines(stream)
    for message in ("first", "second"):
        stream.written.clear()
        handler.handle(record(message))
        assert stream.written.wait(PATIENCE_SECONDS)
    handler.close()
    assert messages("".join(stream.writes)) == ["first", "second"]


def test_closing_writes_what_is_left_also_while_the_lock_is_held(
    stream: Stream, lines: GroupedLines
) -> None:
    lines.handle(record("last"))
    lines.acquire()
    lines.close()
    lines.release()
    assert messages("".join(stream.writes)) == ["last"]


def test_a_stream_that_cannot_be_written_stops_no_caller(
    stream: Stream, lines: GroupedLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(text: str) -> int:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(stream, "write", full)
        lines.handle(record("lost", logging.WARNING))
    lines.handle(record("kept", logging.WARNING))
    assert messages("".join(stream.writes)) == ["kept"]


def test_lines_are_written_before_an_exception_leaves(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_srcfile", "logThreads", "logProcesses", "logMultiprocessing"):
        monkeypatch.setattr(logging, name, getattr(logging, name))
    monkeypatch.setattr(logging.getLogger("cuepost"), "level", logging.NOTSET)
    monkeypatch.setattr(logs, "LONGEST_WAIT_SECONDS", 3_600)
    monkeypatch.setattr(sys, "stderr", stream)

    def fail() -> None:
        with logged("INFO"):
            logging.getLogger("cuepost.rest").info("event=request")
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert messages("".join(stream.writes)) == ["event=request"]
