"""Checks of the doctor: the secret, the time, names of headers, and the body."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from cuepost_receiver.doctor.body_variants import as_the_service_writes
from cuepost_receiver.doctor.causes import Cause
from cuepost_receiver.doctor.suspects import Evidence
from cuepost_receiver.header_reading import WANTED
from cuepost_receiver.signing_key import key_of

_EVENT_KEYS = ["id", "type", "createdAt", "data"]
_UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))
_MOST_ZONE_HOURS = 14
_ZONE_SLACK_SECONDS = 150


def secret_fault(secret: Any) -> Cause | None:
    if not isinstance(secret, str):
        return Cause.SECRET_MALFORMED
    bare = secret.strip().strip("\"'").strip()
    if not bare:
        return Cause.SECRET_MISSING
    if "…" in bare or "..." in bare:
        return Cause.SECRET_IS_A_HINT
    if bare.startswith("cpk_"):
        return Cause.SECRET_IS_AN_API_KEY
    try:
        key_of(bare)
    except ValueError:
        return Cause.SECRET_MALFORMED
    return Cause.SECRET_PADDED if bare != secret else None


def missing_headers(found: Iterable[str]) -> list[str]:
    return [name for name in WANTED if name not in set(found)]


def near_names(missing: Sequence[str], names: Iterable[str]) -> list[str]:
    """Headers with a similar name: `svix-id`, `webhook_id`, `x-webhook-id`."""
    ends = [name.rpartition("-")[2] for name in missing]
    pattern = re.compile(rf"(?i)(svix|webhook|hook|http).*[-_]({'|'.join(ends)})|webhook-.*")
    return sorted({name for name in names if pattern.fullmatch(name)} - set(WANTED))


def timestamp_form(text: str) -> str:
    if re.fullmatch(r"\s*[0-9]+\s*", text):
        return ": it has white space around it, or a leading zero"
    if re.fullmatch(r"[0-9]+\.[0-9]*", text):
        return ": it has decimals"
    if re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return ": it is a date"
    return ""


def span(seconds: float) -> str:
    """A duration in words, such as `7 minutes`."""
    length = abs(seconds)
    for size, unit in _UNITS:
        if length >= 2 * size:
            return f"{length / size:.0f} {unit}"
    return f"{length:.0f} seconds"


def zone_hint(age: float) -> str:
    hours = round(abs(age) / 3_600)
    if not 1 <= hours <= _MOST_ZONE_HOURS or abs(abs(age) - hours * 3_600) > _ZONE_SLACK_SECONDS:
        return ""
    return f" It is off by exactly {hours} hours: local time may have been used instead of UTC."


def likeliest(evidence: Evidence, lengths: Sequence[str]) -> Cause:
    """The most likely cause if no suspect matches, judged by the form of the body."""
    body = evidence.body
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return Cause.BODY_CHARSET
    if "\ufffd" in text:
        return Cause.BODY_CHARSET
    if _is_cut_off(text):
        return Cause.BODY_TRUNCATED
    if evidence.body_id not in {None, evidence.event_id}:
        return Cause.BODY_OF_ANOTHER_EVENT
    if lengths and lengths != [str(len(body))]:
        return Cause.BODY_CHANGED
    return Cause.WRONG_SECRET if _is_as_sent(body) else Cause.BODY_CHANGED


def _is_as_sent(body: bytes) -> bool:
    if as_the_service_writes(body) != body:
        return False
    parsed = json.loads(body)
    return isinstance(parsed, dict) and list(parsed) == _EVENT_KEYS


def _is_cut_off(text: str) -> bool:
    """Whether the text is JSON that is truncated."""
    trimmed = text.strip()
    if not trimmed.startswith(("{", "[")):
        return False
    try:
        json.loads(trimmed)
    except json.JSONDecodeError as error:
        return error.pos >= len(trimmed) or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return False
