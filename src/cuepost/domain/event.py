"""An event, with the exact bytes that every receiver gets."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from json.encoder import encode_basestring as _quoted
from typing import Any
from uuid import UUID

from cuepost.domain.immutable import immutable
from cuepost.domain.instants import to_text

# All events of a batch have the same time.
_instant_text = lru_cache(maxsize=1)(to_text)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class SilenceReason(StrEnum):
    """Why a milestone or an event was not sent to any endpoint."""

    NOT_SUBSCRIBED = "not_subscribed"
    STANDALONE_TRANSCRIPT = "standalone_transcript"
    PROJECT_DELETED = "project_deleted"
    PROJECT_ACCESS_EXPIRED = "project_access_expired"
    NO_EVENT_FOR_STATUS = "no_event_for_status"
    ILLEGAL_TRANSITION = "illegal_transition"
    PROJECT_NOT_FOUND = "project_not_found"
    INVALID = "invalid"
    REPORT_ID_REUSED = "report_id_reused"
    ENDPOINT_DISABLED = "endpoint_disabled"
    ACCESS_CLOSED = "access_closed"
    ACCOUNT_MOVED = "account_moved"


@immutable
class Event:
    account_id: UUID
    id: UUID
    type: str
    created_at: datetime
    project_id: UUID | None
    occurred_at: datetime
    body: bytes
    reason: SilenceReason | None = None

    def silenced(self, reason: SilenceReason) -> "Event":
        return replace(self, reason=reason)


def event_body(
    event_id: UUID, event_type: str, created_at: datetime, data: Mapping[str, Any]
) -> bytes:
    """The body as it is stored, signed and sent: four keys in this order, as compact UTF-8."""
    created = _instant_text(created_at)
    head = f'{{"id":"{event_id}","type":"{event_type}","createdAt":"{created}"'
    return f'{head},"data":{_json(data)}}}'.encode()


def _json(data: Mapping[str, Any]) -> str:
    """Most values are strings, and writing them directly is three times as fast as an encoder."""
    members = [
        f"{_quoted(name)}:{_quoted(value) if isinstance(value, str) else _ENCODER.encode(value)}"
        for name, value in data.items()
    ]
    return f"{{{','.join(members)}}}"
