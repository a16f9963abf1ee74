"""`cuepost verify`: the signature doctor in a terminal."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cuepost.bootstrap.runtime import ServiceRuntime
from cuepost.domain.signing import SigningSecret, signature
from cuepost.interfaces.cli import cli
from tests.support.service_process import command, environment

SECRET = SigningSecret(bytes(range(32)))
OTHER = SigningSecret(bytes(32))
BODY = (
    b'{"id":"0198c0de-7b2c-7f00-8a1b-2c3d4e5f6071","type":"project.ready",'
    b'"createdAt":"2026-01-02T03:04:05.678Z","data":{"projectId":"p"}}'
)
SENT_AT = 1_767_323_045
RECEIVED_AT = "2026-01-02T03:04:06Z"
EVENT_ID = "0198c0de-7b2c-7f00-8a1b-2c3d4e5f6071"
HEADERS = {
    "webhook-id": EVENT_ID,
    "webhook-timestamp": str(SENT_AT),
    "webhook-signature": signature(SECRET, EVENT_ID, SENT_AT, BODY),
}
HEAD = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items()).encode()


def run(*arguments: str, typed: bytes | None = None, secret: str = SECRET.reveal()) -> Result:
    environ = {"CUEPOST_WEBHOOK_SECRET": secret}
    result = CliRunner().invoke(
        cli, ["verify", *arguments], obj=ServiceRuntime({}), input=typed, env=environ
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def request_file(tmp_path: Path) -> str:
    path = tmp_path / "request.txt"
    path.write_bytes(b"POST /hook HTTP/1.1\r\n" + HEAD + b"\r\n" + BODY)
    return str(path)


def test_a_kept_request_is_valid(request_file: str) -> None:
    result = run(request_file, "--at", RECEIVED_AT)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "✓ The signature is valid: it was made with secret 1 of 1, 1 seconds ago.\n"
    )


def test_an_old_request_is_too_old_unless_its_age_is_left_out(request_file: str) -> None:
    old = run(request_file, "--json")
    assert (old.exit_code, json.loads(old.stdout)["cause"]) == (1, "timestamp_too_old")
    assert run(request_file, "--any-age").exit_code == 0


def test_the_parts_may_come_from_files_options_and_stdin(tmp_path: Path) -> None:
    (tmp_path / "head").write_bytes(HEAD)
    (tmp_path / "body").write_bytes(BODY)
    options = [part for name, value in HEADERS.items() for part in ("-H", f"{name}: {value}")]
    for result in (
        run("--headers", str(tmp_path / "head"), "--body", "-", "--any-age", typed=BODY),
        run("--headers", "-", "--body", str(tmp_path / "body"), "--any-age", typed=HEAD),
        run("--body", str(tmp_path / "body"), *options, "--any-age"),
        run("-", "--any-age", typed=HEAD.replace(b"\r\n", b"\n") + b"\n" + BODY),
    ):
        assert result.exit_code == 0, result.output


def test_the_cause_is_named_with_a_way_to_fix_it(request_file: str) -> None:
    path = Path(request_file)
    path.write_bytes(path.read_bytes() + b"\n")
    result = run(request_file, "--any-age")
    assert result.exit_code == 1
    assert result.stdout.startswith(
        "✗ body_trailing_newline\n  A line break at the end of the body"
    )
    assert "\n\n  Fix: Verify the raw bytes of the request" in result.stdout


def test_secrets_come_from_a_file_or_the_environment(request_file: str, tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text(f"{OTHER.reveal()}\n{SECRET.reveal()}\n")
    assert run(request_file, "--any-age", "--secret-file", str(file), secret="").exit_code == 0
    both = f"{OTHER.reveal()},{SECRET.reveal()}"
    assert run(request_file, "--any-age", secret=both).exit_code == 0
    file.write_bytes(b"\xff")
    assert run(request_file, "--secret-file", str(file)).exit_code == 2


def test_without_a_secret_it_says_how_to_give_one(request_file: str) -> None:
    result = run(request_file, secret="")
    how = "set CUEPOST_WEBHOOK_SECRET or use --secret-file."
    assert (result.exit_code, result.stderr) == (2, f"Error: No signing secret: {how}\n")


def test_on_a_terminal_the_secret_is_asked_for_and_not_shown(request_file: str) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command("verify", request_file, "--any-age"),
        env=environment({}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        # Else the prompt would go to the terminal that the tests were started from.
        start_new_session=True,
    ) as process:
        os.close(theirs)
        said = b""
        while not said.endswith(b": "):
            said += os.read(ours, 4_096)
        os.write(ours, SECRET.reveal().encode() + b"\n")
        try:
            while piece := os.read(ours, 4_096):
                said += piece
        except OSError:  # how Linux says that the other end was closed
            pass
    os.close(ours)
    assert process.returncode == 0
    assert b"Signing secret: " in said
    assert SECRET.reveal().encode() not in said


def test_a_secret_from_before_a_rotation_is_recognised(request_file: str, tmp_path: Path) -> None:
    file = tmp_path / "previous"
    file.write_text(OTHER.reveal())
    arguments = ("--any-age", "--previous-secret-file", str(file), "--json")
    result = run(request_file, *arguments, secret=OTHER.reveal())
    assert json.loads(result.stdout)["cause"] == "previous_secret"
    assert OTHER.reveal() not in result.output


def test_a_signature_of_ones_own_code_is_explained(request_file: str) -> None:
    mine = signature(SigningSecret(SECRET.reveal().encode()), EVENT_ID, SENT_AT, BODY)
    result = run(request_file, "--any-age", "--computed", mine, "--json")
    assert json.loads(result.stdout)["cause"] == "secret_prefix_kept"


@pytest.mark.parametrize(
    "arguments",
    [(), ("--headers", "-"), ("--headers", "-", "--body", "-"), ("-", "--body", "-"), ("no-file",)],
    ids=" ".join,
)
def test_what_is_typed_wrongly_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    assert run(*arguments, typed=b"").exit_code == 2


def test_headers_without_a_timestamp_are_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "request").write_bytes(b"webhook-id: x")
    result = run(str(tmp_path / "request"), "--any-age", "--json")
    assert json.loads(result.stdout)["cause"] == "header_missing"
