"""Reads the three webhook headers from the header types of common frameworks."""

from collections.abc import Iterable, Mapping
from typing import Any

from cuepost_receiver.refusal import Reason, VerificationFailed

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"
WANTED = (ID, TIMESTAMP, SIGNATURE)

Text = str | bytes
Headers = Mapping[str, str] | Mapping[bytes, bytes] | Iterable[tuple[Text, Text]]


def webhook_headers(headers: Any) -> dict[str, str]:
    """The webhook headers that are present, by lower-case name."""
    try:
        return _found(headers)
    except VerificationFailed:
        raise
    except Exception:  # noqa: BLE001  # whatever was passed, one exception comes out
        raise VerificationFailed(Reason.BAD_HEADERS) from None


def _found(headers: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers.items() if hasattr(headers, "items") else headers:
        known = _text(name).lower()
        if known not in WANTED:
            continue
        if known in found:
            raise VerificationFailed(Reason.REPEATED_HEADER)
        found[known] = _text(value)
    return found


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise VerificationFailed(Reason.BAD_HEADERS)
    return value
