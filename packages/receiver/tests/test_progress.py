"""How far a download is, for people at a terminal."""

import io
from pathlib import Path

from cuepost_receiver.results.progress import TerminalProgress, silent, size, terminal_progress
from packages.receiver.tests.media_server import File, Site
from packages.receiver.tests.result_harness import (
    CONTENT,
    RESULT,
    client,
    offer,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_alone(service: Site, media: Site, tmp_path: Path) -> None:
    terminal = Terminal()
    shown = terminal_progress(terminal)
    offer(service, media, File(CONTENT))
    client(service).save(service.url(RESULT), tmp_path, progress=shown)
    assert terminal.getvalue().endswith("trailer.mp4  100 %  1.0 MB of 1.0 MB\x1b[K\n")
    assert terminal_progress(io.StringIO()) is silent
    silent("x", 1, 2)


def test_progress_is_not_drawn_at_every_piece() -> None:
    terminal = Terminal()
    progress = TerminalProgress(terminal)
    for done in range(1, 100):
        progress("x", done, 100)
    progress("x", 0, 0)
    assert terminal.getvalue().count("\r") == 2


def test_sizes_are_readable() -> None:
    assert [size(each) for each in (0, 999, 1_500, 2e6, 3e9, 4e12, 5e15)] == [
        "0 B", "999 B", "1.5 kB", "2.0 MB", "3.0 GB", "4.0 TB", "5000.0 TB",
    ]  # fmt: skip
