"""Verifies that a request was signed recently by the service and not changed."""

import hmac
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cuepost_receiver.event import Event, read_event
from cuepost_receiver.header_reading import ID, SIGNATURE, TIMESTAMP, Headers, webhook_headers
from cuepost_receiver.refusal import Reason, VerificationFailed
from cuepost_receiver.signing_key import SIGNATURE_BYTES, canonical_base64, digest, key_of

TOLERANCE_SECONDS = 300
# Without a dot, which separates the parts of the signed content.
_ID = re.compile(r"[\x21-\x2d\x2f-\x7e]{1,256}")
_TIMESTAMP = re.compile(r"0|[1-9][0-9]{0,14}")
_MARK = "v1,"


@dataclass(frozen=True, slots=True)
class Verified:
    """The signed content; `event()` parses it."""

    id: str
    timestamp: int
    body: bytes = field(repr=False)

    def event(self) -> Event:
        """Raises only VerificationFailed, if the body is not this event."""
        event = read_event(self.body)
        if event.id != self.id:
            raise VerificationFailed(Reason.ID_MISMATCH)
        return event


def verify(
    body: bytes | bytearray,
    headers: Headers,
    secrets: str | Iterable[str],
    *,
    now: float | None = None,
    tolerance: float = TOLERANCE_SECONDS,
) -> Verified:
    """Return the signed content; raises only VerificationFailed, for any input.

    `body` is the raw request body. `headers` are the request's, as a mapping or as pairs, in any
    case. `secrets` is one `whsec_…` or, during a rotation, several. `now` is in unix seconds.
    """
    if not isinstance(body, bytes | bytearray):
        raise VerificationFailed(Reason.BAD_BODY)
    raw = bytes(body)
    found = webhook_headers(headers)
    keys = _keys(secrets)
    event_id = _matching(_ID, found, ID, Reason.MISSING_ID, Reason.BAD_ID)
    timestamp = _matching(
        _TIMESTAMP, found, TIMESTAMP, Reason.MISSING_TIMESTAMP, Reason.BAD_TIMESTAMP
    )
    _require_match(_signatures(found), [digest(key, event_id, timestamp, raw) for key in keys])
    _require_recent(int(timestamp), time.time() if now is None else now, tolerance)
    return Verified(event_id, int(timestamp), raw)


def _keys(secrets: Any) -> list[bytes]:
    try:
        given = [secrets] if isinstance(secrets, str) else list(secrets)
        keys = [key_of(secret) for secret in given]
    except Exception:  # noqa: BLE001  # whatever was passed, one exception comes out
        raise VerificationFailed(Reason.BAD_SECRET) from None
    if not keys:
        raise VerificationFailed(Reason.NO_SECRETS)
    return keys


def _matching(
    pattern: re.Pattern[str], found: dict[str, str], name: str, missing: Reason, bad: Reason
) -> str:
    if name not in found:
        raise VerificationFailed(missing)
    if not pattern.fullmatch(found[name]):
        raise VerificationFailed(bad)
    return found[name]


def _signatures(found: dict[str, str]) -> list[bytes]:
    """The valid `v1` signatures; other entries are ignored."""
    if SIGNATURE not in found:
        raise VerificationFailed(Reason.MISSING_SIGNATURE)
    entries = [each for each in found[SIGNATURE].split(" ") if each.startswith(_MARK)]
    decoded = [canonical_base64(each.removeprefix(_MARK)) for each in entries]
    usable = [each for each in decoded if each is not None and len(each) == SIGNATURE_BYTES]
    if not usable:
        raise VerificationFailed(Reason.BAD_SIGNATURE)
    return usable


def _require_match(signatures: list[bytes], expected: list[bytes]) -> None:
    # Compare every pair, so that the duration reveals nothing.
    matches = [hmac.compare_digest(one, other) for one in signatures for other in expected]
    if not any(matches):
        raise VerificationFailed(Reason.NO_MATCH)


def _require_recent(timestamp: int, now: Any, tolerance: Any) -> None:
    try:
        age = float(now) - timestamp
        limit = float(tolerance)
    except (TypeError, ValueError, OverflowError):
        raise VerificationFailed(Reason.BAD_TOLERANCE) from None
    # Written so that NaN is refused.
    if not (age - age == 0 and 0 <= limit < float("inf")):
        raise VerificationFailed(Reason.BAD_TOLERANCE)
    if age > limit:
        raise VerificationFailed(Reason.TOO_OLD)
    if age < -limit:
        raise VerificationFailed(Reason.TOO_NEW)
