"""Signs deliveries for tests, from the convention's text and with nothing of the kit."""

import hashlib
import hmac
import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field

NOW = 1_767_323_045
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwXhyPBKTZYv0="
OTHER_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDdGVzdGluZzE="
EVENT_ID = "0198c0de-7b2c-7f00-8a1b-2c3d4e5f6071"
PROJECT_ID = "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90"


def event_body(
    event_id: str = EVENT_ID, kind: str = "project.failed", message: str = "Größe <1> & 100 %"
) -> bytes:
    data = {
        "projectId": PROJECT_ID,
        "status": "failed",
        "stage": "export",
        "error": {"code": "render_timeout", "message": message},
    }
    event = {"id": event_id, "type": kind, "createdAt": "2026-01-02T03:04:05.678Z", "data": data}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def signature(secret: str, event_id: str, timestamp: object, body: bytes) -> str:
    key = b64decode(secret.removeprefix("whsec_"))
    return signature_with(key, f"{event_id}.{timestamp}.".encode() + body)


def signature_with(key: bytes, content: bytes) -> str:
    return "v1," + b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


@dataclass(frozen=True, slots=True)
class Delivery:
    """A request as the service sends it."""

    body: bytes = field(default_factory=event_body)
    event_id: str = EVENT_ID
    timestamp: int = NOW
    secrets: Sequence[str] = (SECRET,)

    @property
    def signature(self) -> str:
        made = (signature(each, self.event_id, self.timestamp, self.body) for each in self.secrets)
        return " ".join(made)

    @property
    def headers(self) -> dict[str, str]:
        return {
            "content-type": "application/json; charset=utf-8",
            "webhook-id": self.event_id,
            "webhook-timestamp": str(self.timestamp),
            "webhook-signature": self.signature,
        }
