"""The typed envelope of an event."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cuepost_receiver.refusal import Reason, VerificationFailed

TEST_TYPE = "webhook.test"
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")


@dataclass(frozen=True, slots=True)
class Event:
    """`type` may be newer than this kit; ignore types that you do not know."""

    id: str
    type: str
    created_at: datetime
    data: Mapping[str, Any]

    @property
    def is_test(self) -> bool:
        return self.type == TEST_TYPE

    @property
    def project_id(self) -> str | None:
        return self._text("projectId")

    @property
    def status(self) -> str | None:
        return self._text("status")

    @property
    def stage(self) -> str | None:
        return self._text("stage")

    @property
    def result_url(self) -> str | None:
        """The URL from which `ResultClient` gets the finished export."""
        return self._text("resultUrl")

    @property
    def error(self) -> Mapping[str, Any] | None:
        """`code` and `message` of a failed project."""
        found = self.data.get("error")
        return found if isinstance(found, dict) else None

    def _text(self, name: str) -> str | None:
        found = self.data.get(name)
        return found if isinstance(found, str) else None


def read_event(body: bytes) -> Event:
    """Raises VerificationFailed and nothing else."""
    try:
        envelope = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise VerificationFailed(Reason.NOT_AN_EVENT) from None
    match envelope:
        case {
            "id": str(event_id),
            "type": str(kind),
            "createdAt": str(created),
            "data": dict(data),
        }:
            return Event(event_id, kind, _instant(created), data)
        case _:
            raise VerificationFailed(Reason.NOT_AN_EVENT)


def _instant(text: str) -> datetime:
    if not _INSTANT.fullmatch(text):
        raise VerificationFailed(Reason.NOT_AN_EVENT)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise VerificationFailed(Reason.NOT_AN_EVENT) from None
