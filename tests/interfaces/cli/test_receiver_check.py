"""`cuepost receiver check`: a good receiver passes, a careless one is warned of."""

import json
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cuepost.bootstrap.runtime import ServiceRuntime
from cuepost.domain.signing import SigningSecret
from cuepost.interfaces.cli import cli, receiver_probe
from cuepost_receiver import VerificationFailed, verify
from tests.interfaces.cli.judging_receiver import judging_receiver
from tests.support.certificates import Authority
from tests.support.fault_server import unused_port

SECRET = SigningSecret(bytes(range(32))).reveal()


def careful(body: bytes, headers: Mapping[str, str]) -> int:
    try:
        verify(body, headers, SECRET)
    except VerificationFailed:
        return 400
    return 204


def forgetful_of_time(body: bytes, headers: Mapping[str, str]) -> int:
    try:
        verify(body, headers, SECRET, tolerance=10**9)
    except VerificationFailed:
        return 400
    return 204


def careless(body: bytes, headers: Mapping[str, str]) -> int:
    return 200


def run(url: str, *arguments: str, secret: str = SECRET) -> Result:
    environ = {"CUEPOST_WEBHOOK_SECRET": secret}
    result = CliRunner().invoke(
        cli, ["receiver", "check", url, *arguments], obj=ServiceRuntime({}), env=environ
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def levels(result: Result) -> dict[str, str]:
    return {each["check"]: each["level"] for each in json.loads(result.stdout)["findings"]}


def test_a_careful_receiver_passes() -> None:
    with judging_receiver(careful) as port:
        result = run(f"http://127.0.0.1:{port}/hook", "--json")
    assert result.exit_code == 0
    assert levels(result) == {
        "address": "warning",
        "dns": "warning",
        "tls": "warning",
        "signed": "ok",
        "stale": "ok",
        "forged": "ok",
    }


def test_a_receiver_that_accepts_a_badly_signed_event_is_warned_of() -> None:
    with judging_receiver(careless) as port:
        result = run(f"http://127.0.0.1:{port}/hook")
    assert result.exit_code == 1
    assert (
        "✗ forged    An event with a wrong signature was accepted with 200: the receiver does not "
        "check signatures, so anyone can send it events.\n"
    ) in result.stdout


def test_a_receiver_that_accepts_old_events_is_warned_of() -> None:
    with judging_receiver(forgetful_of_time) as port:
        result = run(f"http://127.0.0.1:{port}/hook", "--json")
    assert result.exit_code == 0
    assert levels(result) | {"stale": "warning", "forged": "ok"} == levels(result)


def test_without_a_secret_the_forgers_request_is_still_sent() -> None:
    with judging_receiver(careless) as port:
        result = run(f"http://127.0.0.1:{port}/hook", "--json", secret="")
    found = levels(result)
    assert (result.exit_code, found["signed"], found["forged"]) == (1, "note", "failure")


@pytest.mark.parametrize(
    ("status", "check", "words"),
    [
        (307, "redirect", "does not follow redirects"),
        (404, "signed", "with 404, not with 2xx"),
        (-1, "signed", "The connection failed"),
    ],
)
def test_a_receiver_that_does_not_acknowledge_fails(status: int, check: str, words: str) -> None:
    with judging_receiver(lambda body, headers: status) as port:
        result = run(f"http://127.0.0.1:{port}/hook", "--json")
        shown = run(f"http://127.0.0.1:{port}/hook").stdout
    [failure] = [
        each for each in json.loads(result.stdout)["findings"] if each["level"] == "failure"
    ]
    assert (result.exit_code, failure["check"]) == (1, check)
    assert words in failure["sentence"]
    assert "\x1b" not in shown


def test_a_receiver_that_does_not_answer_in_time_fails() -> None:
    released = threading.Event()

    def hang(body: bytes, headers: Mapping[str, str]) -> int:
        released.wait(30)
        return 200

    with judging_receiver(hang) as port:
        result = run(f"http://127.0.0.1:{port}/hook", "--timeout", "0.2")
        released.set()
    assert result.exit_code == 1
    assert "No response within 0.2 s." in result.stdout


def test_a_slow_receiver_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_probe, "SLOW_SECONDS", 0.0)
    with judging_receiver(careful) as port:
        result = run(f"http://127.0.0.1:{port}/hook")
    assert "Respond first, and process the event afterwards" in result.stdout


def test_a_forgers_request_without_an_answer_is_only_a_warning() -> None:
    def shy(body: bytes, headers: Mapping[str, str]) -> int:
        status = careful(body, headers)
        return status if status == 204 else -1

    with judging_receiver(shy) as port:
        result = run(f"http://127.0.0.1:{port}/hook", "--json")
    assert (result.exit_code, levels(result)["forged"]) == (0, "warning")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def over_tls(context: ssl.SSLContext, *arguments: str) -> Any:
    with judging_receiver(careful, context) as port:
        result = run(f"https://127.0.0.1:{port}/hook", "--json", *arguments)
    [found] = [each for each in json.loads(result.stdout)["findings"] if each["check"] == "tls"]
    return result.exit_code, found


def test_a_good_certificate_is_told_with_its_days(authority: Authority, tmp_path: Path) -> None:
    trust = authority.write_to(tmp_path / "authority.pem")
    code, found = over_tls(authority.server_context("127.0.0.1"), "--ca-file", trust)
    assert (code, found["level"]) == (0, "ok")
    assert found["facts"]["certificateDays"] > 365
    assert found["facts"]["version"] == "TLSv1.3"


def test_a_certificate_that_ends_soon_is_warned_of(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver_probe, "EXPIRY_WARNING_DAYS", 100_000)
    trust = authority.write_to(tmp_path / "authority.pem")
    code, found = over_tls(authority.server_context("127.0.0.1"), "--ca-file", trust)
    assert (code, found["level"]) == (0, "warning")


def test_a_certificate_that_is_not_trusted_fails_with_its_cause(
    authority: Authority, tmp_path: Path
) -> None:
    trust = authority.write_to(tmp_path / "authority.pem")
    unknown = over_tls(authority.server_context("127.0.0.1"))
    expired = over_tls(authority.server_context("127.0.0.1", expired=True), "--ca-file", trust)
    other = over_tls(authority.server_context("receiver.example"), "--ca-file", trust)
    found = [
        (code, each["level"], each["facts"]["cause"]) for code, each in (unknown, expired, other)
    ]
    assert found == [
        (1, "failure", "certificate_unknown_authority"),
        (1, "failure", "certificate_expired"),
        (1, "failure", "certificate_wrong_host"),
    ]


def test_a_receiver_that_is_not_there_fails() -> None:
    result = run(f"https://127.0.0.1:{unused_port()}/hook", "--json")
    assert (result.exit_code, levels(result)["tls"]) == (1, "failure")


def test_a_name_that_does_not_resolve_fails() -> None:
    result = run("https://receiver.invalid/hook", "--json")
    assert (result.exit_code, levels(result)["dns"]) == (1, "failure")


@pytest.mark.parametrize(
    ("url", "arguments", "secret"),
    [
        ("ftp://example.com", (), SECRET),
        ("no url", (), SECRET),
        ("https://example.com/", (), "whsec_?"),
        ("https://example.com/", ("--ca-file", __file__), SECRET),
    ],
    ids=["scheme", "words", "secret", "authority"],
)
def test_what_cannot_be_used_is_one_line(url: str, arguments: tuple[str, ...], secret: str) -> None:
    result = run(url, *arguments, secret=secret)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
