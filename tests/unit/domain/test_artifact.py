"""Files of exports: which names and keys there can be, and under which name they are saved."""

import re
from pathlib import PurePosixPath
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cuepost.domain.artifact import Artifact, faults_of, is_file_name, is_media_key

VIDEO = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)
# What paths are made of, and what could be mistaken for it.
TRICKY = st.text(st.sampled_from("/.\\\0\naü~%\udc2e"))
ANYTHING = st.one_of(TRICKY, st.text(), st.from_regex(r"(\.{1,3}/|[^/]{0,3}/)*.{0,3}"))


@pytest.mark.parametrize("name", ["a", "trailer.mp4", "Überblick (1).mp4", "...", " ", "x" * 255])
def test_a_plain_name_is_a_file_name(name: str) -> None:
    assert is_file_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "a/b", "/a", "a\\b", "a\0", "a\n", "a\x7f", "a\x85", "x" * 256),
        *("a\u2028b", "gpj\u202e4pm.exe", "a\u2066b", "a\udc80", "a\ud800"),
    ],
)
def test_what_is_no_plain_name_is_no_file_name(name: str) -> None:
    assert not is_file_name(name)


@pytest.mark.parametrize(
    "key", ["a", "a/b", ".a/b.", "..a/b..", ".../a", "ü/ 1", "x" * 255, "/".join("x" * 512)]
)
def test_names_with_slashes_between_are_a_key(key: str) -> None:
    assert is_media_key(key)


@pytest.mark.parametrize(
    "key",
    [
        *("", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "../a", "a/..", "a/../b", "a/./b"),
        *("a\\..\\b", "a\0/b", "a/b\n", "a\n/b", "\udcff/a", "x" * 256, "/".join("x" * 513)),
    ],
)
def test_what_could_lead_elsewhere_is_no_key(key: str) -> None:
    assert not is_media_key(key)


@given(ANYTHING)
@example("a/b/../../..")
def test_no_key_leads_out_of_the_folder_that_it_is_put_behind(key: str) -> None:
    if is_media_key(key):
        path = PurePosixPath("/media") / key
        assert path.parts[:2] == ("/", "media")
        assert ".." not in path.parts
        assert str(path) == f"/media/{key}"


@given(ANYTHING)
def test_every_file_name_is_a_single_step(name: str) -> None:
    if is_file_name(name):
        assert is_media_key(f"exports/{name}")
        assert PurePosixPath("/media", name).parent == PurePosixPath("/media")


def test_faults_say_which_field_is_meant() -> None:
    assert faults_of(VIDEO.name, VIDEO.key) == []
    found = faults_of("a/b", "../b")
    assert [(fault.field, fault.code) for fault in found] == [
        ("name", "invalid_file_name"),
        ("key", "invalid_key"),
    ]


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("trailer.mp4", 'attachment; filename="trailer.mp4"'),
        ("a b;c=d.mp4", 'attachment; filename="a b;c=d.mp4"'),
        ('"a".mp4', "attachment; filename=\"_a_.mp4\"; filename*=UTF-8''%22a%22.mp4"),
        ("50%41.mp4", "attachment; filename=\"50_41.mp4\"; filename*=UTF-8''50%2541.mp4"),
        ("für.mp4", "attachment; filename=\"f_r.mp4\"; filename*=UTF-8''f%C3%BCr.mp4"),
        ("*'é'*", "attachment; filename=\"_'_'_\"; filename*=UTF-8''%2A%27%C3%A9%27%2A"),
    ],
)
def test_a_download_is_saved_under_its_name(name: str, header: str) -> None:
    assert Artifact("video", name, "k", "video/mp4", 1).disposition == header


@given(ANYTHING)
@example("a\u00a0b")
def test_whatever_the_name_its_header_is_plain_and_tells_it_whole(name: str) -> None:
    if not is_file_name(name):
        return
    header = Artifact("video", name, "k", "video/mp4", 1).disposition
    assert header.isascii()
    assert header.isprintable()
    encoded = re.fullmatch(r"attachment; filename=\"[^\"\\]*\"; filename\*=UTF-8''(.*)", header)
    assert name == (unquote(encoded[1]) if encoded else header.split('"')[1])


def test_a_fingerprint_is_of_all_that_is_known_of_a_file() -> None:
    others = [
        Artifact("audio", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000),
        Artifact("video", "teaser.mp4", "a/1.mp4", "video/mp4", 1_000),
        Artifact("video", "trailer.mp4", "a/2.mp4", "video/mp4", 1_000),
        Artifact("video", "trailer.mp4", "a/1.mp4", "video/webm", 1_000),
        Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_001),
    ]
    assert len({each.fingerprint for each in (VIDEO, *others)}) == 6
    assert len(VIDEO.fingerprint) == 16
