"""The checks of `cuepost receiver check`; each returns a result and never raises."""

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

EXPIRY_WARNING_DAYS = 21
DAY_SECONDS = 86_400
STALE_SECONDS = 3_600
SLOW_SECONDS = 5.0
WRONG_SECRET = SigningSecret(b"\xff" * KEY_BYTES)


class ProbeLevel(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    check: str
    level: ProbeLevel
    sentence: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProbeResponse:
    """`fault` is set if there was no response."""

    status: int
    location: str
    seconds: float
    fault: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        return {"status": self.status or None, "latencyMs": round(self.seconds * 1_000)}


@dataclass(frozen=True, slots=True)
class Probe:
    """`now` is the creation time of the test events."""

    url: ReceiverUrl
    secrets: tuple[SigningSecret, ...]
    now: datetime
    timeout: float
    context: ssl.SSLContext

    def run(self) -> Iterator[ProbeResult]:
        """Check in the order of a delivery; stop where a delivery would fail."""
        for check in (self._dns, self._tls):
            found = check()
            yield found
            if found.level is ProbeLevel.FAILURE:
                return
        yield from self._calls()

    def _dns(self) -> ProbeResult:
        try:
            resolved = socket.getaddrinfo(self.url.host, self.url.port, type=socket.SOCK_STREAM)
        except OSError as error:
            return ProbeResult(
                "dns", ProbeLevel.FAILURE, f"The host name does not resolve: {error}."
            )
        addresses = sorted({str(each[4][0]) for each in resolved})
        facts = {"addresses": addresses}
        verdicts = [judge_address(ip_address(each), EgressPolicy()) for each in addresses]
        if any(verdict is not Verdict.ALLOWED for verdict in verdicts):
            sentence = (
                "Resolves to an address that is not public; the service would refuse to connect."
            )
            return ProbeResult("dns", ProbeLevel.WARNING, sentence, facts)
        return ProbeResult("dns", ProbeLevel.OK, f"Resolves to {', '.join(addresses)}.", facts)

    def _tls(self) -> ProbeResult:
        if self.url.scheme == "http":
            sentence = "No TLS: by default the service only sends to https URLs."
            return ProbeResult("tls", ProbeLevel.WARNING, sentence)
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
            return ProbeResult("tls", ProbeLevel.FAILURE, f"The TLS connection failed: {error}.")
        days = int((ends - self.now.timestamp()) // DAY_SECONDS)
        facts = {
            "version": version,
            "certificateDays": days,
            "handshakeMs": round((time.monotonic() - began) * 1_000),
        }
        if days < EXPIRY_WARNING_DAYS:
            sentence = f"The certificate expires in {days} days; check that its renewal works."
            return ProbeResult("tls", ProbeLevel.WARNING, sentence, facts)
        return ProbeResult(
            "tls",
            ProbeLevel.OK,
            f"{version}, the certificate is valid for {days} more days.",
            facts,
        )

    def _calls(self) -> Iterator[ProbeResult]:
        if self.secrets:
            found = self._signed()
            yield found
            if found.level is ProbeLevel.FAILURE:
                return
            yield self._rejects("stale", self._post(self.secrets, age=STALE_SECONDS), _STALE)
        else:
            sentence = "Skipped: no signing secret was given."
            yield ProbeResult("signed", ProbeLevel.NOTE, sentence)
        yield self._rejects("forged", self._post((WRONG_SECRET,)), _FORGED)

    def _signed(self) -> ProbeResult:
        response = self._post(self.secrets)
        if response.fault:
            return ProbeResult("signed", ProbeLevel.FAILURE, response.fault, response.facts)
        if 300 <= response.status < 400:
            sentence = (
                f"The receiver redirects ({response.status}) to "
                f"{response.location or 'no location'}. The service "
                "does not follow redirects: register the final URL."
            )
            return ProbeResult("redirect", ProbeLevel.FAILURE, sentence, response.facts)
        if not 200 <= response.status < 300:
            sentence = (
                f"The receiver answered a signed test event with {response.status}, not with 2xx. "
                "Check that this is the secret of this endpoint."
            )
            return ProbeResult("signed", ProbeLevel.FAILURE, sentence, response.facts)
        took = (
            f"A signed test event was accepted with {response.status} in {response.seconds:.2f} s"
        )
        if response.seconds > SLOW_SECONDS:
            sentence = f"{took}. Respond first, and process the event afterwards."
            return ProbeResult("signed", ProbeLevel.WARNING, sentence, response.facts)
        return ProbeResult("signed", ProbeLevel.OK, f"{took}.", response.facts)

    def _rejects(
        self, check: str, response: ProbeResponse, expectation: tuple[str, str, ProbeLevel]
    ) -> ProbeResult:
        good, bad, level = expectation
        if response.fault:
            return ProbeResult(check, ProbeLevel.WARNING, response.fault, response.facts)
        if 200 <= response.status < 300:
            return ProbeResult(check, level, bad.format(response.status), response.facts)
        return ProbeResult(check, ProbeLevel.OK, good.format(response.status), response.facts)

    def _post(self, signers: tuple[SigningSecret, ...], age: int = 0) -> ProbeResponse:
        # Distinct events have distinct ids; the same check repeated at `now` has the same id.
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
            response = connection.getresponse()
            location = response.headers["location"] or ""
            return ProbeResponse(response.status, location, time.monotonic() - began)
        except TimeoutError:
            fault = f"No response within {self.timeout:g} s."
        except (OSError, http.client.HTTPException) as error:
            fault = f"The connection failed: {str(error) or type(error).__name__}."
        finally:
            connection.close()
        return ProbeResponse(0, "", time.monotonic() - began, fault)

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self.url.host, self.url.port
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(
                host, port, timeout=self.timeout, context=self.context
            )
        return http.client.HTTPConnection(host, port, timeout=self.timeout)


def _untrusted(error: ssl.SSLCertVerificationError) -> ProbeResult:
    why = error.verify_message.rstrip(".") or "no reason given"
    otherwise = ("certificate_not_trusted", f"The certificate is not trusted: {why}.")
    cause, sentence = _CERTIFICATE_FAULTS.get(error.verify_code, otherwise)
    return ProbeResult("tls", ProbeLevel.FAILURE, sentence, {"cause": cause})


_WRONG_HOST = (
    TlsFault.CERTIFICATE_WRONG_HOST.value,
    "The certificate is for another host name; install one for this host.",
)
_UNKNOWN_AUTHORITY = (
    TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY.value,
    (
        "The certificate was issued by an unknown authority, or the receiver does not send the "
        "intermediate certificates; serve the full chain."
    ),
)
# Keys are the X509_V_ERR_… codes of OpenSSL, which are stable.
_CERTIFICATE_FAULTS: Final[Mapping[int, tuple[str, str]]] = {
    9: (
        TlsFault.CERTIFICATE_NOT_YET_VALID.value,
        "The certificate is not valid yet; check the clock of the machine that issued it.",
    ),
    10: (TlsFault.CERTIFICATE_EXPIRED.value, "The certificate has expired; renew it."),
    **dict.fromkeys((62, 64), _WRONG_HOST),
    **dict.fromkeys((2, 18, 19, 20, 21), _UNKNOWN_AUTHORITY),
}

_FORGED = (
    "An event with a wrong signature was rejected with {}.",
    (
        "An event with a wrong signature was accepted with {}: the receiver does not check "
        "signatures, so anyone can send it events."
    ),
    ProbeLevel.FAILURE,
)
_STALE = (
    "A signed event that is an hour old was rejected with {}.",
    (
        "A signed event that is an hour old was accepted with {}: reject timestamps that are more "
        "than five minutes off, to prevent replays."
    ),
    ProbeLevel.WARNING,
)
