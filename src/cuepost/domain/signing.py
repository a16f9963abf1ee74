"""Signing secrets and signatures of the Standard Webhooks convention, version `v1`."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

PREFIX = "whsec_"
KEY_BYTES = 32
HINT_PREFIX = "whsec_…"


@dataclass(frozen=True, slots=True, repr=False)
class SigningSecret:
    """The key bytes; only `reveal` gives them away, and only their owner is shown them, once."""

    key: bytes

    @classmethod
    def parse(cls, text: str) -> "SigningSecret":
        try:
            return cls(b64decode(text.removeprefix(PREFIX), validate=True))
        except ValueError:
            raise ValueError("a signing secret is 'whsec_' and base64 text") from None

    def reveal(self) -> str:
        return PREFIX + b64encode(self.key).decode()

    @property
    def hint(self) -> str:
        return HINT_PREFIX + b64encode(self.key).decode()[-4:]

    def __repr__(self) -> str:
        return f"SigningSecret({self.hint})"


def signature(secret: SigningSecret, event_id: UUID | str, timestamp: int, body: bytes) -> str:
    message = f"{event_id}.{timestamp}.".encode() + body
    return "v1," + b64encode(hmac.digest(secret.key, message, "sha256")).decode()


def signature_header(
    secrets: Sequence[SigningSecret], event_id: UUID | str, timestamp: int, body: bytes
) -> str:
    """One signature for each live secret, the newest first, one space between."""
    return " ".join(signature(secret, event_id, timestamp, body) for secret in secrets)
