"""Known mistakes between a delivery and its verification, tried one by one."""

import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cuepost_receiver.doctor.body_variants import body_variants
from cuepost_receiver.doctor.causes import Cause
from cuepost_receiver.signing_key import PREFIX, key_of

NEIGHBOUR_SECONDS = 3_600
# Limits the work for one delivery; half of it is enough for an ordinary body.
MOST_HASHED_BYTES = 32 << 20
# A sender makes one for each live secret.
MOST_SIGNATURES = 32
# What an HMAC hashes besides the content.
_BYTES_PER_DIGEST = 128

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A delivery with well-formed headers; `signatures` are decoded bytes."""

    event_id: str
    timestamp: str
    body: bytes
    secrets: Sequence[str] = field(repr=False)
    retired: Sequence[str] = field(repr=False)
    signatures: Sequence[bytes]

    @property
    def keys(self) -> list[bytes]:
        return [key_of(secret) for secret in self.secrets]

    def content(
        self,
        *,
        event_id: str | None = None,
        timestamp: str | None = None,
        body: bytes | None = None,
    ) -> bytes:
        named = self.event_id if event_id is None else event_id
        at = self.timestamp if timestamp is None else timestamp
        return f"{named}.{at}.".encode() + (self.body if body is None else body)

    @property
    def body_id(self) -> str | None:
        """The id of the event in the body."""
        try:
            parsed = json.loads(self.body.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return None
        found = parsed.get("id") if isinstance(parsed, dict) else None
        return found if isinstance(found, str) else None


@dataclass(frozen=True, slots=True)
class Suspect:
    cause: Cause
    key: bytes = field(repr=False)
    content: bytes = field(repr=False)
    hash: str = "sha256"
    facts: Facts = field(default_factory=dict)

    def made(self, signatures: Sequence[bytes]) -> bool:
        made = hmac.digest(self.key, self.content, self.hash)
        return any(hmac.compare_digest(made, each) for each in signatures)


def matching_suspect(evidence: Evidence) -> Suspect | None:
    """The first suspect that produces one of the signatures; gives up after MOST_HASHED_BYTES."""
    left, signatures = MOST_HASHED_BYTES, evidence.signatures[:MOST_SIGNATURES]
    for source in (
        _bodies,
        _ids,
        _milliseconds,
        _secrets,
        _contents,
        _hashes,
        _retired,
        _pairs,
        _attempts,
    ):
        for suspect in source(evidence):
            left -= len(suspect.content) + _BYTES_PER_DIGEST
            if left < 0:
                return None
            if suspect.made(signatures):
                return suspect
    return None


def _bodies(evidence: Evidence) -> Iterator[Suspect]:
    for cause, body in body_variants(evidence.body):
        for key in evidence.keys:
            yield Suspect(cause, key, evidence.content(body=body))


def _ids(evidence: Evidence) -> Iterator[Suspect]:
    given = evidence.event_id
    for key in evidence.keys:
        for other in (given.lower(), given.upper(), given.strip("\"'<>"), given.replace("-", "")):
            yield Suspect(Cause.ID_MALFORMED, key, evidence.content(event_id=other))
        if evidence.body_id:
            content = evidence.content(event_id=evidence.body_id)
            yield Suspect(Cause.ID_OF_ANOTHER_EVENT, key, content)


def _milliseconds(evidence: Evidence) -> Iterator[Suspect]:
    facts = {"looks_like": ": it is in milliseconds"}
    content = evidence.content(timestamp=evidence.timestamp[:-3])
    for key in evidence.keys:
        yield Suspect(Cause.TIMESTAMP_MALFORMED, key, content, facts=facts)


def _secrets(evidence: Evidence) -> Iterator[Suspect]:
    for secret in evidence.secrets:
        text = secret.removeprefix(PREFIX)
        content = evidence.content()
        yield Suspect(Cause.SECRET_PREFIX_KEPT, (PREFIX + text).encode(), content)
        yield Suspect(Cause.SECRET_PREFIX_KEPT, PREFIX.encode() + key_of(secret), content)
        yield Suspect(Cause.SECRET_NOT_DECODED, text.encode(), content)


def _contents(evidence: Evidence) -> Iterator[Suspect]:
    named, at, body = evidence.event_id.encode(), evidence.timestamp.encode(), evidence.body
    forms = {
        "only the body": body,
        "timestamp and body, without the id": at + b"." + body,
        "id and body, without the timestamp": named + b"." + body,
        "id, timestamp and body, without the separating dots": named + at + body,
        "id and timestamp, without the body": named + b"." + at,
        "id and timestamp, with an empty body": named + b"." + at + b".",
    }
    for key in evidence.keys:
        swapped = evidence.content(event_id=evidence.timestamp, timestamp=evidence.event_id)
        yield Suspect(Cause.ID_AND_TIMESTAMP_SWAPPED, key, swapped)
        for name, content in forms.items():
            yield Suspect(Cause.OTHER_CONTENT_SIGNED, key, content, facts={"content": name})


def _hashes(evidence: Evidence) -> Iterator[Suspect]:
    for key in evidence.keys:
        for name, shown in (("sha1", "SHA-1"), ("sha512", "SHA-512"), ("sha384", "SHA-384")):
            yield Suspect(Cause.OTHER_HASH, key, evidence.content(), name, {"hash": shown})


def _retired(evidence: Evidence) -> Iterator[Suspect]:
    for secret in evidence.retired:
        yield Suspect(Cause.PREVIOUS_SECRET, key_of(secret), evidence.content())


def _pairs(evidence: Evidence) -> Iterator[Suspect]:
    """A changed body together with a second mistake; the body is reported first."""
    for cause, body in body_variants(evidence.body):
        content = evidence.content(body=body)
        for secret in evidence.secrets:
            yield Suspect(cause, secret.encode(), content)
            yield Suspect(cause, secret.removeprefix(PREFIX).encode(), content)
        for secret in evidence.retired:
            yield Suspect(cause, key_of(secret), content)


def _attempts(evidence: Evidence) -> Iterator[Suspect]:
    given, keys = int(evidence.timestamp), evidence.keys
    for distance in range(1, NEIGHBOUR_SECONDS + 1):
        for second in (given - distance, given + distance):
            facts = {"signed_for": second, "given": given}
            content = evidence.content(timestamp=str(second))
            for key in keys:
                yield Suspect(Cause.TIMESTAMP_OF_ANOTHER_ATTEMPT, key, content, facts=facts)
