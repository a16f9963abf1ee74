"""The result client: the key to the service alone, the file whole or not at all."""

import io
import json
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost_receiver.results import Problem, Result, ResultClient, ResultFailed
from cuepost_receiver.results.links import Link, read_result
from cuepost_receiver.results.places import place_of, within
from cuepost_receiver.results.progress import TerminalProgress, silent, size, terminal_progress
from cuepost_receiver.results.transfer import next_url
from packages.receiver.tests.media_server import File, Site, answer, as_json, redirect, running

PROJECT = "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90"
RESULT = f"/v1/projects/{PROJECT}/result"
KEY = "cpk_canary"
CONTENT = bytes(range(256)) * 4_000


@pytest.fixture
def service() -> Iterator[Site]:
    with running() as site:
        yield site


@pytest.fixture
def media() -> Iterator[Site]:
    with running() as site:
        yield site


def link(url: str, **changed: Any) -> dict[str, Any]:
    return {
        "kind": "video",
        "name": "trailer.mp4",
        "url": url,
        "contentType": "video/mp4",
        "sizeBytes": len(CONTENT),
        "expiresAt": "2030-01-02T03:04:05.678Z",
    } | changed


def result(*links: dict[str, Any]) -> dict[str, Any]:
    return {
        "projectId": PROJECT,
        "status": "completed",
        "stage": "export",
        "links": list(links),
        "accessExpiresAt": None,
    }


def client(service: Site, **more: Any) -> ResultClient:
    return ResultClient(service.url(), KEY, **{"retry_seconds": (0.0,) * 5, "timeout": 5.0, **more})


def offer(service: Site, media: Site, file: Any, **changed: Any) -> None:
    media.routes["/file"] = file
    service.routes[RESULT] = as_json(result(link(media.url("/file?sig=1"), **changed)))


def problem(call: Any) -> Problem:
    with pytest.raises(ResultFailed) as caught:
        call()
    assert KEY not in str(caught.value)
    return caught.value.problem


def test_fresh_links_are_fetched_with_the_key(service: Site) -> None:
    service.routes[RESULT] = as_json(
        result(link("https://media.example.com/x")) | {"accessExpiresAt": "2030-01-02T03:04:05Z"}
    )
    found = client(service).fetch(service.url(RESULT))
    assert isinstance(found, Result)
    assert (found.project_id, found.status, found.links[0].size_bytes) == (
        PROJECT,
        "completed",
        len(CONTENT),
    )
    assert found.access_expires_at is not None
    assert [each["authorization"] for each in service.headers_of(RESULT)] == [f"Bearer {KEY}"]


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example.com/v1/projects/x/result",
        "http://127.0.0.1:{port}@evil.example.com/v1/result",
        "https://127.0.0.1:{port}/v1/result",
        "http://127.0.0.1:{port}0/v1/result",
        "http://127.0.0.1:{port}/base2/v1/result",
        "http://127.0.0.1:{port}/base",
        "http://127.0.0.1:{port}/base/../v1/result",
        "http://127.0.0.1:{port}/base/%2e%2E/v1/result",
        "http://127.0.0.1:{port}/base/..%2f/v1/result",
        "http://127.0.0.1:{port}/base\\..\\x",
        "//127.0.0.1:{port}/base/x",
        "file:///etc/passwd",
        "http://127.0.0.1:{port}/base/x y",
        "http://[::1/base/x",
        "http:///base/x",
        "",
    ],
)
def test_the_key_goes_nowhere_else(service: Site, url: str) -> None:
    mine = ResultClient(service.url("/base/"), KEY)
    wanted = url.replace("{port}", str(service.port))
    assert problem(lambda: mine.fetch(wanted)) is Problem.OUTSIDE_BASE_URL
    assert service.requests == []


@given(st.text(), st.text())
def test_an_address_is_below_the_base_or_refused(host: str, path: str) -> None:
    for url in (host, f"https://{host}/{path}", f"https://cuepost.example.com{path}"):
        try:
            place = within("https://cuepost.example.com/api", url)
        except ResultFailed:
            continue
        assert place.origin == ("https", "cuepost.example.com", 443)
        assert place.target.startswith("/api/")


def test_the_service_cannot_redirect_the_key(service: Site, media: Site) -> None:
    service.routes[RESULT] = redirect(media.url("/steal"))
    found = problem(lambda: client(service).fetch(service.url(RESULT)))
    assert (found, media.requests) == (Problem.OUTSIDE_BASE_URL, [])


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


@pytest.mark.parametrize(
    ("status", "expected", "may_pass"),
    [
        (401, Problem.UNAUTHORIZED, False),
        (403, Problem.UNAUTHORIZED, False),
        (404, Problem.NOT_FOUND, False),
        (409, Problem.NOT_READY, True),
        (410, Problem.GONE, False),
        (418, Problem.BAD_ANSWER, False),
        (503, Problem.UNAVAILABLE, True),
    ],
)
def test_what_the_service_refuses_is_told_with_its_own_words(
    service: Site, status: int, expected: Problem, may_pass: bool
) -> None:
    service.routes[RESULT] = as_json({"detail": "In its own words."}, status)
    with pytest.raises(ResultFailed, match="own words") as caught:
        client(service).fetch(service.url(RESULT))
    assert (caught.value.problem, caught.value.may_pass) == (expected, may_pass)


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        "text",
        {},
        {"detail": 7},
        result(link("x", sizeBytes=-1)),
        result(link("x", sizeBytes="1")),
        result(link("x", expiresAt="soon")),
        result(link("x", name=None)),
        result() | {"links": 7},
    ],
)
def test_an_answer_of_another_form_is_refused(service: Site, content: Any) -> None:
    service.routes[RESULT] = as_json(content)
    assert problem(lambda: client(service).fetch(service.url(RESULT))) is Problem.BAD_ANSWER


def test_an_answer_that_is_not_json_is_refused(service: Site) -> None:
    for status, expected in ((200, Problem.BAD_ANSWER), (500, Problem.UNAVAILABLE)):
        service.routes[RESULT] = partial(answer, status=status, body=b"<html>")
        assert problem(lambda: client(service).fetch(service.url(RESULT))) is expected


def test_a_service_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with running() as gone:
        url = gone.url()
    mine = ResultClient(url, KEY, timeout=1)
    assert problem(lambda: mine.fetch(url + RESULT)) is Problem.UNAVAILABLE


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


def test_a_file_that_changed_meanwhile_is_fetched_anew(
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
def test_without_proof_of_the_same_version_it_starts_anew(
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


def test_expired_links_are_fetched_anew(service: Site, media: Site, tmp_path: Path) -> None:
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


def test_a_result_that_is_replaced_meanwhile_is_said(
    service: Site, media: Site, tmp_path: Path
) -> None:
    def replace(request: Any) -> None:
        service.routes[RESULT] = as_json(result())
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


def test_the_deadline_holds_for_a_server_that_is_silent(service: Site) -> None:
    service.routes[RESULT] = lambda request: request.rfile.read(1)
    mine = client(service)
    assert problem(lambda: mine.fetch(service.url(RESULT), deadline=0.2)) is Problem.TOO_SLOW


def test_redirects_end_somewhere(service: Site, media: Site, tmp_path: Path) -> None:
    mine = client(service)
    for target in ("/file", "http://[", "ftp://x/y", ""):
        offer(service, media, redirect(target))
        assert problem(lambda: mine.save(service.url(RESULT), tmp_path)) is Problem.LINK_REFUSED


def test_a_file_is_not_fetched_in_the_clear_when_the_service_has_tls() -> None:
    bare = ResultClient("https://cuepost.example.com", KEY)
    plain = read_result(result(link("http://media.example.com/x"))).links[0]
    assert problem(lambda: bare._require_as_safe(plain)) is Problem.LINK_REFUSED


def test_a_redirect_does_not_lead_out_of_tls() -> None:
    assert next_url("https://a.example/x", "/y") == "https://a.example/y"
    for location in ("http://a.example/y", "http://[", "data:,x"):
        follow = partial(next_url, "https://a.example/x", location)
        assert problem(follow) is Problem.LINK_REFUSED


def test_a_folder_that_cannot_be_written_is_said(
    service: Site, media: Site, tmp_path: Path
) -> None:
    offer(service, media, File(CONTENT))
    (tmp_path / "file").write_text("")
    mine = client(service)
    found = problem(lambda: mine.save(service.url(RESULT), tmp_path / "file"))
    assert found is Problem.CANNOT_WRITE


@pytest.mark.parametrize(
    ("name", "file_name"),
    [
        ("trailer.mp4", "trailer.mp4"),
        ("../../etc/passwd", "passwd"),
        ("C:\\windows\\evil.exe", "evil.exe"),
        (".bashrc", "bashrc"),
        ("..", "result"),
        ("", "result"),
        ("a\x00b\n.srt", "a_b_.srt"),
        ("Größe 1.mp4", "Größe 1.mp4"),
    ],
)
def test_a_name_cannot_lead_out_of_the_folder(name: str, file_name: str) -> None:
    assert read_result(result(link("x", name=name))).links[0].file_name == file_name


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


def test_neither_key_nor_links_are_in_a_repr() -> None:
    found: Link = read_result(result(link("https://media.example.com/canary"))).links[0]
    assert "canary" not in repr(found)
    assert "canary" not in repr(ResultClient("https://cuepost.example.com", KEY))


def test_tls_is_verified_by_default() -> None:
    context = ResultClient("https://cuepost.example.com", KEY).context
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert place_of("https://x.example/").port == 443


def test_a_service_without_trusted_tls_is_unavailable(service: Site) -> None:
    mine = ResultClient(f"https://127.0.0.1:{service.port}", KEY, timeout=2)
    found = problem(lambda: mine.fetch(f"https://127.0.0.1:{service.port}{RESULT}"))
    assert found is Problem.UNAVAILABLE


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
