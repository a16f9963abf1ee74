"""What a receiver does when it is called: each look gives a finding, never an exception."""

import http.client
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from ipaddress import ip_address
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from cuepost.domain.attempt import TlsFault
from cuepost.domain.egress_policy import EgressPolicy, Verdict, judge_address
from cuepost.domain.event import event_body
from cuepost.domain.event_catalog import TEST_EVENT, webhook_test_data
from cuepost.domain.receiver_url import ReceiverUrl
from cuepost.domain.signing import KEY_BYTES, SigningSecret, signature_header

FEW_DAYS = 21
DAY_SECONDS = 86_400
STALE_SECONDS = 3_600
LONG_SECONDS = 5.0
STRANGERS_KEY = SigningSecret(b"\xff" * KEY_BYTES)


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    level: Level
    sentence: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answered:
    """`fault` is set when there was no answer."""

    status: int
    location: str
    seconds: float
    fault: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        return {"status": self.status or None, "latencyMs": round(self.seconds * 1_000)}


@dataclass(frozen=True, slots=True)
class Probe:
    """`now` is when the test events were made; `timeout` what the service would grant."""

    url: ReceiverUrl
    secrets: tuple[SigningSecret, ...]
    now: datetime
    timeout: float
    context: ssl.SSLContext

    def findings(self) -> Iterator[Finding]:
        """In the order in which the service meets the receiver; stops where it would."""
        for look in (self._dns, self._tls):
            found = look()
            yield found
            if found.level is Level.FAILURE:
                return
        yield from self._calls()

    def _dns(self) -> Finding:
        try:
            answers = socket.getaddrinfo(self.url.host, self.url.port, type=socket.SOCK_STREAM)
        except OSError as error:
            return Finding("dns", Level.FAILURE, f"The host name does not resolve: {error}.")
        addresses = sorted({str(each[4][0]) for each in answers})
        facts = {"addresses": addresses}
        verdicts = [judge_address(ip_address(each), EgressPolicy()) for each in addresses]
        if any(verdict is not Verdict.ALLOWED for verdict in verdicts):
            sentence = "It resolves to an address that is not public; the service would not call."
            return Finding("dns", Level.WARNING, sentence, facts)
        return Finding("dns", Level.OK, f"Resolves to {', '.join(addresses)}.", facts)

    def _tls(self) -> Finding:
        if self.url.scheme == "http":
            sentence = "There is no TLS; the service calls https alone."
            return Finding("tls", Level.WARNING, sentence)
        began = time.monotonic()
        try:
            with (
                socket.create_connection((self.url.host, self.url.port), self.timeout) as plain,
                self.context.wrap_socket(plain, server_hostname=self.url.host) as secured,
            ):
                ends = ssl.cert_time_to_seconds(str((secured.getpeercert() or {})["notAfter"]))
                version = secured.version()
        except ssl.SSLCertVerificationError as error:
            return _untrusted(error)
        except OSError as error:
            return Finding("tls", Level.FAILURE, f"No TLS connection: {error}.")
        days = int((ends - self.now.timestamp()) // DAY_SECONDS)
        facts = {
            "version": version,
            "certificateDays": days,
            "handshakeMs": round((time.monotonic() - began) * 1_000),
        }
        if days < FEW_DAYS:
            sentence = f"The certificate ends in {days} days; is its renewal working?"
            return Finding("tls", Level.WARNING, sentence, facts)
        return Finding(
            "tls", Level.OK, f"{version}, the certificate is good for {days} days.", facts
        )

    def _calls(self) -> Iterator[Finding]:
        if self.secrets:
            found = self._signed()
            yield found
            if found.level is Level.FAILURE:
                return
            yield self._refuses("stale", self._post(self.secrets, age=STALE_SECONDS), _STALE)
        else:
            sentence = "Not tried: without the signing secret nothing can be signed."
            yield Finding("signed", Level.NOTE, sentence)
        yield self._refuses("forged", self._post((STRANGERS_KEY,)), _FORGED)

    def _signed(self) -> Finding:
        answer = self._post(self.secrets)
        if answer.fault:
            return Finding("signed", Level.FAILURE, answer.fault, answer.facts)
        if 300 <= answer.status < 400:
            sentence = (
                f"It redirects ({answer.status}) to {answer.location or 'nowhere'}; redirects are "
                "not followed: register the final address."
            )
            return Finding("redirect", Level.FAILURE, sentence, answer.facts)
        if not 200 <= answer.status < 300:
            sentence = (
                f"A signed test event was answered with {answer.status}; any 2xx is expected. Is "
                "this the secret of this endpoint?"
            )
            return Finding("signed", Level.FAILURE, sentence, answer.facts)
        took = f"A signed test event was answered with {answer.status} in {answer.seconds:.2f} s"
        if answer.seconds > LONG_SECONDS:
            sentence = f"{took}: acknowledge first, and do the work afterwards."
            return Finding("signed", Level.WARNING, sentence, answer.facts)
        return Finding("signed", Level.OK, f"{took}.", answer.facts)

    def _refuses(self, check: str, answer: Answered, words: tuple[str, str, Level]) -> Finding:
        good, bad, level = words
        if answer.fault:
            return Finding(check, Level.WARNING, answer.fault, answer.facts)
        if 200 <= answer.status < 300:
            return Finding(check, level, bad.format(answer.status), answer.facts)
        return Finding(check, Level.OK, good.format(answer.status), answer.facts)

    def _post(self, signers: tuple[SigningSecret, ...], age: int = 0) -> Answered:
        # Each event is one of its own, and the same again only for the same call.
        event_id = uuid5(NAMESPACE_URL, f"{self.url.text} {self.now} {age} {signers}")
        body = event_body(event_id, TEST_EVENT, self.now, webhook_test_data(event_id))
        timestamp = int(self.now.timestamp()) - age
        headers = {
            "content-type": "application/json; charset=utf-8",
            "user-agent": "cuepost receiver check",
            "webhook-id": str(event_id),
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature_header(signers, event_id, timestamp, body),
        }
        began = time.monotonic()
        connection = self._connection()
        try:
            connection.request("POST", self.url.target, body, headers)
            answer = connection.getresponse()
            location = answer.headers["location"] or ""
            return Answered(answer.status, location, time.monotonic() - began)
        except TimeoutError:
            fault = f"No answer within {self.timeout:g} s."
        except (OSError, http.client.HTTPException) as error:
            fault = f"The connection failed: {str(error) or type(error).__name__}."
        finally:
            connection.close()
        return Answered(0, "", time.monotonic() - began, fault)

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self.url.host, self.url.port
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(
                host, port, timeout=self.timeout, context=self.context
            )
        return http.client.HTTPConnection(host, port, timeout=self.timeout)


def _untrusted(error: ssl.SSLCertVerificationError) -> Finding:
    why = error.verify_message.rstrip(".") or "no reason is given"
    otherwise = ("certificate_not_trusted", f"The certificate is not trusted: {why}.")
    cause, sentence = _CERTIFICATE_FAULTS.get(error.verify_code, otherwise)
    return Finding("tls", Level.FAILURE, sentence, {"cause": cause})


_WRONG_HOST = (
    TlsFault.CERTIFICATE_WRONG_HOST.value,
    "The certificate is for another host name; get one that names this host.",
)
_UNKNOWN_AUTHORITY = (
    TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY.value,
    (
        "The certificate comes from an authority that is not known here, or the receiver does not "
        "send the certificates in between; serve the whole chain."
    ),
)
# By the numbers of OpenSSL (X509_V_ERR_…), which do not change.
_CERTIFICATE_FAULTS: Final[Mapping[int, tuple[str, str]]] = {
    9: (
        TlsFault.CERTIFICATE_NOT_YET_VALID.value,
        "The certificate is not valid yet; is the clock right where it was made?",
    ),
    10: (TlsFault.CERTIFICATE_EXPIRED.value, "The certificate has expired; renew it."),
    **dict.fromkeys((62, 64), _WRONG_HOST),
    **dict.fromkeys((2, 18, 19, 20, 21), _UNKNOWN_AUTHORITY),
}

_FORGED = (
    "A badly signed event was refused with {}.",
    (
        "A badly signed event was accepted with {}: the receiver does not check signatures, so "
        "anybody can send it events."
    ),
    Level.FAILURE,
)
_STALE = (
    "A signed event that is an hour old was refused with {}.",
    (
        "A signed event that is an hour old was accepted with {}: refuse timestamps that are more "
        "than five minutes off, so that nobody can send recorded ones again."
    ),
    Level.WARNING,
)
