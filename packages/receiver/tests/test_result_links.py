"""The result client asks the service: with the key, there and nowhere else."""

import ssl
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost_receiver.results import Problem, Result, ResultClient, ResultFailed
from cuepost_receiver.results.links import Link, read_result
from cuepost_receiver.results.places import place_of, within
from cuepost_receiver.results.transfer import next_url
from packages.receiver.tests.media_server import Site, answer, as_json, redirect, running
from packages.receiver.tests.result_harness import (
    CONTENT,
    KEY,
    PROJECT,
    RESULT,
    client,
    link,
    problem,
    result,
)


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
    assert found.exported_at == datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    assert [each["authorization"] for each in service.headers_of(RESULT)] == [f"Bearer {KEY}"]


def test_an_older_service_does_not_say_when_it_exported(service: Site) -> None:
    answered = result()
    del answered["exportedAt"]
    service.routes[RESULT] = as_json(answered)
    assert client(service).fetch(service.url(RESULT)).exported_at is None


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


def test_the_deadline_holds_for_a_server_that_is_silent(service: Site) -> None:
    service.routes[RESULT] = lambda request: request.rfile.read(1)
    mine = client(service)
    assert problem(lambda: mine.fetch(service.url(RESULT), deadline=0.2)) is Problem.TOO_SLOW


def test_a_file_is_not_fetched_in_the_clear_when_the_service_has_tls() -> None:
    bare = ResultClient("https://cuepost.example.com", KEY)
    plain = read_result(result(link("http://media.example.com/x"))).links[0]
    assert problem(lambda: bare._require_as_safe(plain)) is Problem.LINK_REFUSED


def test_a_redirect_does_not_lead_out_of_tls() -> None:
    assert next_url("https://a.example/x", "/y") == "https://a.example/y"
    for location in ("http://a.example/y", "http://[", "data:,x"):
        follow = partial(next_url, "https://a.example/x", location)
        assert problem(follow) is Problem.LINK_REFUSED


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
