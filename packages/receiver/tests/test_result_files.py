"""The result client fetches files: whole or not at all, and on from where it broke off."""

import json
from pathlib import Path
from typing import Any

import pytest

from cuepost_receiver.results import Problem
from packages.receiver.tests.media_server import File, Site, answer, as_json, redirect
from packages.receiver.tests.result_harness import (
    CONTENT,
    RESULT,
    client,
    link,
    offer,
    problem,
    result,
)


def test_media_get_no_key_wherever_they_are(service: Site, media: Site, tmp_path: Path) -> None:
    media.routes["/there"] = redirect("/file", 307)
    media.routes["/file"] = File(CONTENT)
    service.routes["/file"] = redirect(media.url("/there"))
    service.routes[RESULT] = as_json(result(link(service.url("/file"))))
    [path] = client(service).save(service.url(RESULT), tmp_path / "new folder")
    assert (path.read_bytes(), path.name) == (CONTENT, "trailer.mp4")
    asked = [*media.requests, *[each for each in service.requests if each[0] == "/file"]]
    assert len(asked) == 3
    assert all("authorization" not in headers for _, headers in asked)


def test_a_broken_download_goes_on_where_it_broke_off(
    service: Site, media: Site, tmp_path: Path
) -> None:
    offer(service, media, File(CONTENT, breaks=[100_000, 200_000, 0]))
    [path] = client(service).save(service.url(RESULT), tmp_path)
    assert path.read_bytes() == CONTENT
    ranges = [headers.get("range") for headers in media.headers_of("/file")]
    assert ranges == [None, "bytes=100000-", "bytes=300000-", "bytes=300000-"]
    assert len(service.headers_of(RESULT)) == 4
    assert [each.name for each in tmp_path.iterdir()] == ["trailer.mp4"]


def test_the_next_process_goes_on_too(service: Site, media: Site, tmp_path: Path) -> None:
    offer(service, media, File(CONTENT, breaks=[100_000]))
    once = client(service, retry_seconds=())
    assert problem(lambda: once.save(service.url(RESULT), tmp_path)) is Problem.UNAVAILABLE
    assert not (tmp_path / "trailer.mp4").exists()
    [path] = once.save(service.url(RESULT), tmp_path)
    assert path.read_bytes() == CONTENT
    assert media.headers_of("/file")[1]["if-range"] == '"v1"'


def test_a_file_that_changed_meanwhile_is_fetched_again(
    service: Site, media: Site, tmp_path: Path
) -> None:
    file = File(CONTENT, breaks=[100_000])
    offer(service, media, file)
    once = client(service, retry_seconds=())
    problem(lambda: once.save(service.url(RESULT), tmp_path))
    file.tag, file.content = '"v2"', CONTENT[::-1]
    [path] = once.save(service.url(RESULT), tmp_path)
    assert path.read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("tag", [None, 'W/"weak"'], ids=["no tag", "weak tag"])
def test_without_proof_of_the_same_version_it_starts_again(
    service: Site, media: Site, tmp_path: Path, tag: str | None
) -> None:
    offer(service, media, File(CONTENT, tag=tag, breaks=[100_000]))
    [path] = client(service).save(service.url(RESULT), tmp_path)
    assert path.read_bytes() == CONTENT
    assert [headers.get("range") for headers in media.headers_of("/file")] == [None, None]


def test_a_left_over_of_another_size_is_not_used(
    service: Site, media: Site, tmp_path: Path
) -> None:
    offer(service, media, File(CONTENT))
    (tmp_path / "trailer.mp4.part").write_bytes(b"old")
    for mark in ('{"validator": "\\"v1\\"", "size": 7}', "[]", '{"size": 7}', "?"):
        (tmp_path / "trailer.mp4.part.json").write_text(mark)
        [path] = client(service).save(service.url(RESULT), tmp_path)
        assert path.read_bytes() == CONTENT
    left_over = {"validator": 7, "size": len(CONTENT)}
    (tmp_path / "trailer.mp4.part").write_bytes(b"old")
    (tmp_path / "trailer.mp4.part.json").write_text(json.dumps(left_over))
    client(service).save(service.url(RESULT), tmp_path)
    assert all("range" not in headers for headers in media.headers_of("/file"))


@pytest.mark.parametrize(
    ("status", "content_range"),
    [(206, "bytes 5-9/10"), (206, None), (416, None)],
)
def test_a_part_that_was_not_asked_for_makes_it_start_over(
    service: Site, media: Site, tmp_path: Path, status: int, content_range: str | None
) -> None:
    file = File(CONTENT, breaks=[100_000])
    wrong = iter([True])

    def serve(request: Any) -> None:
        if request.headers["range"] and next(wrong, False):
            headers = {"content-range": content_range} if content_range else {}
            answer(request, status, b"12345", headers)
        else:
            file(request)

    offer(service, media, serve)
    [path] = client(service).save(service.url(RESULT), tmp_path)
    assert path.read_bytes() == CONTENT


def test_expired_links_are_fetched_again(service: Site, media: Site, tmp_path: Path) -> None:
    statuses = iter([403, 410])

    def serve(request: Any) -> None:
        status = next(statuses, None)
        if status:
            answer(request, status)
        else:
            File(CONTENT)(request)

    offer(service, media, serve)
    [path] = client(service).save(service.url(RESULT), tmp_path)
    assert path.read_bytes() == CONTENT
    assert len(service.headers_of(RESULT)) == 3


def test_a_link_that_is_refused_for_ever_is_given_up(
    service: Site, media: Site, tmp_path: Path
) -> None:
    offer(service, media, lambda request: answer(request, 403))
    mine = client(service)
    assert problem(lambda: mine.save(service.url(RESULT), tmp_path)) is Problem.LINK_REFUSED
    offer(service, media, lambda request: answer(request, 400))
    assert problem(lambda: mine.save(service.url(RESULT), tmp_path)) is Problem.LINK_REFUSED


@pytest.mark.parametrize(
    "other",
    [{"links": []}, {"exportedAt": "2026-02-03T04:05:06.789Z"}],
    ids=["other files", "a later export"],
)
def test_a_result_that_is_replaced_meanwhile_is_said(
    service: Site, media: Site, tmp_path: Path, other: dict[str, Any]
) -> None:
    def replace(request: Any) -> None:
        again = result(link(media.url("/file")))
        service.routes[RESULT] = as_json(again | other)
        answer(request, 503)

    offer(service, media, replace)
    assert problem(lambda: client(service).save(service.url(RESULT), tmp_path)) is Problem.GONE


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((len(CONTENT), 1_000), Problem.TOO_LARGE),
        ((1_000, 10**9), Problem.WRONG_SIZE),
        ((1_000, 1_000), Problem.TOO_LARGE),
    ],
)
def test_a_file_that_is_too_large_is_refused(
    service: Site, media: Site, tmp_path: Path, sizes: tuple[int, int], expected: Problem
) -> None:
    size_bytes, most = sizes
    offer(service, media, File(CONTENT), sizeBytes=size_bytes)
    mine = client(service)
    found = problem(lambda: mine.save(service.url(RESULT), tmp_path, most_bytes=most))
    assert found is expected
    assert not (tmp_path / "trailer.mp4").exists()


def test_the_deadline_holds_for_a_server_that_drips(
    service: Site, media: Site, tmp_path: Path
) -> None:
    def drip(request: Any) -> None:
        request.send_response(200)
        request.send_header("content-length", str(len(CONTENT)))
        request.end_headers()
        try:
            for byte in CONTENT:
                request.wfile.write(bytes([byte]))
        except OSError:
            request.close_connection = True

    offer(service, media, drip)
    mine = client(service)
    found = problem(lambda: mine.save(service.url(RESULT), tmp_path, deadline=0.3))
    assert found is Problem.TOO_SLOW


def test_redirects_end_somewhere(service: Site, media: Site, tmp_path: Path) -> None:
    mine = client(service)
    for target in ("/file", "http://[", "ftp://x/y", ""):
        offer(service, media, redirect(target))
        assert problem(lambda: mine.save(service.url(RESULT), tmp_path)) is Problem.LINK_REFUSED


def test_a_folder_that_cannot_be_written_is_said(
    service: Site, media: Site, tmp_path: Path
) -> None:
    offer(service, media, File(CONTENT))
    (tmp_path / "file").write_text("")
    mine = client(service)
    found = problem(lambda: mine.save(service.url(RESULT), tmp_path / "file"))
    assert found is Problem.CANNOT_WRITE


def test_two_files_of_one_name_are_both_kept(service: Site, media: Site, tmp_path: Path) -> None:
    media.routes["/a"], media.routes["/b"] = File(b"a"), File(b"b")
    some = [
        link(media.url(path), name=name, sizeBytes=1)
        for path, name in (("/a", "x.srt"), ("/b", "x.srt"), ("/a", "result"), ("/b", "result"))
    ]
    service.routes[RESULT] = as_json(result(*some))
    paths = client(service).save(service.url(RESULT), tmp_path)
    names = ["x.srt", "x (2).srt", "result", "result (2)"]
    assert [(path.name, path.read_bytes()) for path in paths] == list(
        zip(names, (b"a", b"b") * 2, strict=True)
    )
