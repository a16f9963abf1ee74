"""The media folder: nothing outside of it is ever opened or written, whatever lies inside."""

import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cuepost.adapters.media.confined_folder import created_inside, open_inside, remove_inside
from cuepost.domain.artifact import is_media_key

SECRET = b"not for you"
STEPS = ["", ".", "..", "a", "in", "out", "up", "root", "loop", "file", "secret", "\0", "\udc61"]
KEYS = st.one_of(
    st.lists(st.sampled_from(STEPS), max_size=6).map("/".join),
    st.text(),
    st.text(st.sampled_from("./a\\\0~%")),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file, and with every kind of way out."""
    root = tmp_path / "media"
    (root / "a" / "in").mkdir(parents=True)
    (root / "a" / "file").write_bytes(b"content")
    (root / "a" / "in" / "file").write_bytes(b"content")
    (tmp_path / "secret").write_bytes(SECRET)
    for folder in (root, root / "a", root / "a" / "in"):
        (folder / "out").symlink_to(tmp_path / "secret")
        (folder / "up").symlink_to(tmp_path)
        (folder / "root").symlink_to("/")
        (folder / "loop").symlink_to("loop")
    return root


def content_of(root: Path, key: str) -> bytes | None:
    try:
        descriptor = open_inside(root, key)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def test_a_file_is_opened_by_its_key(root: Path) -> None:
    assert content_of(root, "a/file") == b"content"
    assert content_of(root, "a/in/file") == b"content"


@pytest.mark.parametrize(
    "key",
    [
        *("../secret", "a/../../secret", "/etc/passwd", "a//file", "a/./file", "", ".", "..", "a/"),
        *("out", "a/out", "up/secret", "a/up/secret", "root/etc/passwd", "loop", "loop/file"),
        *("a", "a/in", "none", "a/file/x", "a\0/file", "\udc61/file", "x" * 300),
    ],
)
def test_whatever_else_is_asked_for_is_not_there(root: Path, key: str) -> None:
    assert content_of(root, key) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(KEYS)
@example("up/secret")
def test_no_key_escapes_the_media_root_even_if_it_was_not_checked(root: Path, key: str) -> None:
    content = content_of(root, key)
    assert content in (None, b"content")
    if content is not None:
        assert is_media_key(key)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(KEYS)
@example("up/written")
def test_nothing_is_written_outside_of_the_media_root(root: Path, key: str) -> None:
    before = sorted(each.name for each in root.parent.iterdir())
    try:
        with created_inside(root, f"{key}/new", ".draft") as descriptor:
            os.write(descriptor, b"content")
    except OSError:
        pass
    assert sorted(each.name for each in root.parent.iterdir()) == before
    assert (root.parent / "secret").read_bytes() == SECRET


def test_a_link_inside_the_folder_is_not_followed_either(root: Path) -> None:
    (root / "same").symlink_to("a/file")
    (root / "b").symlink_to("a")
    assert content_of(root, "same") is None
    assert content_of(root, "b/file") is None


def test_pipes_sockets_and_devices_are_not_opened(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
        for key in ("pipe", "socket", "zero"):
            assert content_of(root, key) is None


def test_a_device_is_not_opened(root: Path) -> None:
    try:
        os.mknod(root / "null", 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        (root / "null").symlink_to("/dev/null")
    assert content_of(root, "null") is None


def test_the_root_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(root)
    assert content_of(tmp_path / "elsewhere", "a/file") == b"content"


def test_a_file_appears_when_it_is_whole_and_its_folders_with_it(root: Path) -> None:
    with created_inside(root, "x/y/new", ".draft") as descriptor:
        os.write(descriptor, b"whole")
        assert content_of(root, "x/y/new") is None
    assert content_of(root, "x/y/new") == b"whole"
    assert [each.name for each in (root / "x" / "y").iterdir()] == ["new"]
    assert (root / "x" / "y" / "new").stat().st_mode & 0o777 == 0o600


def test_what_breaks_off_leaves_nothing_and_replaces_nothing(root: Path) -> None:
    with suppress(InterruptedError), created_inside(root, "a/file", ".draft") as descriptor:
        os.write(descriptor, b"half")
        raise InterruptedError
    assert content_of(root, "a/file") == b"content"
    assert not (root / "a" / ".draft").exists()


def test_no_descriptor_is_left_open(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for key in ("a/file", "a/out", "a/none", "up/secret", "a/in", "../x"):
        content_of(root, key)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_is_taken_away_but_nothing_that_a_link_leads_to(tmp_path: Path) -> None:
    root, outside = tmp_path / "media", tmp_path / "outside"
    outside.mkdir()
    (outside / "film.mp4").write_bytes(b"mine")
    (root / "a").mkdir(parents=True)
    (root / "a" / "film.mp4").write_bytes(b"film")
    (root / "linked").symlink_to(outside)

    for key in ("a/film.mp4", "a/film.mp4", "b/film.mp4", "../outside/film.mp4", ""):
        remove_inside(root, key)
    remove_inside(root, "linked/film.mp4")

    assert list((root / "a").iterdir()) == []
    assert (outside / "film.mp4").read_bytes() == b"mine"
