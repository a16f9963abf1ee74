"""E-mail over real SMTP: with TLS from the start or by STARTTLS, with credentials, and in time."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cuepost.adapters.smtp_mail import SmtpMailer, SmtpServer
from cuepost.adapters.system_clock import SystemClock
from cuepost.bootstrap.mail import mail_checks, smtp_mailer
from cuepost.interfaces.cli.runtime import CheckResult, Level
from cuepost.ports.mail import MailNotSent
from cuepost.settings import Settings, load
from tests.support.certificates import Authority
from tests.support.mail_server import MailServer, mail_server
from tests.support.service_process import free_port

HOST = "127.0.0.1"
LOGIN = ("me@example.com", "s3cret/:@ password")
RIGHT = "me%40example.com:s3cret%2F%3A%40%20password"
WRONG = "me%40example.com:another"
TLS = pytest.mark.parametrize("scheme", ["smtps", "smtp+starttls"])


@dataclass(frozen=True)
class Failure:
    credentials: str
    name: str
    error: str
    sentence: str


PASSWORD = Failure(WRONG, HOST, "SMTPAuthenticationError", "refuses the user or the password")
CERTIFICATE = Failure(
    RIGHT,
    "other.example.com",
    "SSLCertVerificationError",
    "has a certificate that is not valid for its name",
)
FAILURES = pytest.mark.parametrize("failure", [PASSWORD, CERTIFICATE], ids=["password", "name"])


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """One that the client trusts."""
    made = Authority()
    monkeypatch.setenv("SSL_CERT_FILE", made.write_to(tmp_path / "authority.pem"))
    return made


@contextlib.contextmanager
def server(scheme: str, authority: Authority, name: str = HOST) -> Iterator[MailServer]:
    context = authority.server_context(name)
    own = {"tls": context} if scheme == "smtps" else {"starttls": context}
    with mail_server(free_port(), **own, login=LOGIN) as made:
        yield made


def settings(url: str) -> Settings:
    return load({"CUEPOST_SMTP_URL": url, "CUEPOST_BASE_URL": "https://hooks.example.com"})


def mailer(url: str) -> SmtpMailer:
    made = smtp_mailer(settings(url), SystemClock())
    assert made is not None
    return made


async def send(by: SmtpMailer) -> None:
    await by.send("ada@example.com", "Grüße", "Hello Ada\n")


async def checked(url: str) -> list[CheckResult]:
    return [each async for each in mail_checks(settings(url), SystemClock())]


@TLS
async def test_a_message_arrives_over_tls_with_credentials(
    scheme: str, authority: Authority
) -> None:
    with server(scheme, authority) as made:
        await send(mailer(f"{scheme}://{RIGHT}@{HOST}:{made.port}"))
    [message] = made.messages
    assert made.logins == [LOGIN]
    assert message["From"] == "cuepost@hooks.example.com"
    assert message["To"] == "ada@example.com"
    assert message["Auto-Submitted"] == "auto-generated"
    assert made.text(0) == "Hello Ada\n"


@TLS
@FAILURES
async def test_nothing_is_sent_to_a_server_that_is_not_the_right_one(
    scheme: str, authority: Authority, failure: Failure
) -> None:
    with (
        server(scheme, authority, failure.name) as made,
        pytest.raises(MailNotSent, match=f"^{failure.error}$"),
    ):
        await send(mailer(f"{scheme}://{failure.credentials}@{HOST}:{made.port}"))
    assert (made.messages, "MAIL" in made.commands) == ([], False)


async def test_a_certificate_of_an_unknown_authority_is_refused(authority: Authority) -> None:
    with (
        server("smtps", Authority("another")) as made,
        pytest.raises(MailNotSent, match=r"^SSLCertVerificationError$"),
    ):
        await send(mailer(f"smtps://{RIGHT}@{HOST}:{made.port}"))
    assert made.messages == []


@pytest.mark.parametrize("credentials", ["", f"{RIGHT}@"])
async def test_a_server_without_starttls_is_refused_before_anything_is_sent(
    credentials: str,
) -> None:
    with (
        mail_server(free_port()) as made,
        pytest.raises(MailNotSent, match=r"^SMTPNotSupportedError$"),
    ):
        await send(mailer(f"smtp+starttls://{credentials}{HOST}:{made.port}"))
    assert (made.messages, made.commands) == ([], ["EHLO"])


async def test_a_subject_of_two_lines_is_no_header() -> None:
    with pytest.raises(MailNotSent, match=r"^InvalidHeader$"):
        await mailer(f"smtp://{HOST}:9").send("ada@example.com", "one\r\nBcc: all", "text")


@pytest.mark.parametrize("end", ["=0D=0A", "=0A", "=0D"])
async def test_an_encoded_word_adds_no_header_either(end: str) -> None:
    word = f"=?utf-8?q?x{end}Bcc:_all@example.com?="
    for recipient, subject in (("ada@example.com", word), (f"{word}@example.com", "one")):
        with pytest.raises(MailNotSent, match=r"^InvalidHeader$"):
            await mailer(f"smtp://{HOST}:9").send(recipient, subject, "text")


GREETING = b"220 mail.example.com\r\n"


@contextlib.asynccontextmanager
async def slow_server(*, greeting: bytes, drips: bool) -> AsyncIterator[int]:
    """Sends the greeting, and then nothing, or a byte of an endless line from time to time."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        with contextlib.suppress(OSError, TimeoutError):
            while not reader.at_eof():
                async with asyncio.timeout(0.05):
                    await reader.read(100)
        with contextlib.suppress(OSError):
            while drips:
                writer.write(b"2")
                await writer.drain()
                await asyncio.wait_for(asyncio.shield(over.wait()), 0.05)
        await over.wait()
        writer.close()

    over = asyncio.Event()
    listening = await asyncio.start_server(answer, HOST, 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        over.set()
        listening.close()
        await listening.wait_closed()


@pytest.mark.parametrize("drips", [False, True])
@pytest.mark.parametrize("greeting", [b"", GREETING])
async def test_a_server_that_hangs_is_left_at_the_deadline(greeting: bytes, drips: bool) -> None:
    async with slow_server(greeting=greeting, drips=drips) as port:
        by = SmtpMailer(SmtpServer(HOST, port), "me@example.com", SystemClock(), deadline=0.5)
        began = time.monotonic()
        with pytest.raises(MailNotSent):
            await send(by)
        assert time.monotonic() - began < 5


@TLS
async def test_the_doctor_signs_in_and_sends_nothing(scheme: str, authority: Authority) -> None:
    with server(scheme, authority) as made:
        found = await checked(f"{scheme}://{RIGHT}@{HOST}:{made.port}")
    assert found == [CheckResult("e-mail", Level.OK, "The mail server accepts connections.")]
    assert (made.messages, "MAIL" in made.commands) == ([], False)


@TLS
@FAILURES
async def test_the_doctor_says_what_is_wrong(
    scheme: str, authority: Authority, failure: Failure
) -> None:
    with server(scheme, authority, failure.name) as made:
        [found] = await checked(f"{scheme}://{failure.credentials}@{HOST}:{made.port}")
    assert found.level is Level.FAILURE
    assert found.sentence == f"The mail server of CUEPOST_SMTP_URL {failure.sentence}."


async def test_the_doctor_finds_a_closed_port() -> None:
    [found] = await checked(f"smtp://{HOST}:{free_port()}")
    assert found.level is Level.FAILURE
    assert found.sentence == "The mail server of CUEPOST_SMTP_URL takes no connection."


async def test_without_a_mail_server_the_doctor_has_nothing_to_check() -> None:
    assert await checked("") == []
