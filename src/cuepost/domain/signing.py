"""Signing secrets and signatures of the Standard Webhooks convention, version `v1`."""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from uuid import UUID

from cuepost.domain.record import record

PREFIX = "whsec_"
KEY_BYTES = 32
HINT_PREFIX = "whsec_…"
_BLOCK_BYTES = 64


@record
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
        """The last four characters in front of the padding, which is the same for every secret."""
        return HINT_PREFIX + b64encode(self.key).decode().rstrip("=")[-4:]

    def __repr__(self) -> str:
        return f"SigningSecret({self.hint})"


def signature(secret: SigningSecret, event_id: UUID | str, timestamp: int, body: bytes) -> str:
    fresh_inner, fresh_outer = _halves(secret.key)
    inner, outer = fresh_inner.copy(), fresh_outer.copy()
    inner.update(b"%b.%d.%b" % (str(event_id).encode(), timestamp, body))
    outer.update(inner.digest())
    return "v1," + b64encode(outer.digest()).decode()


@lru_cache(maxsize=1024)
def _halves(key: bytes) -> tuple["hashlib._Hash", "hashlib._Hash"]:
    """Of HMAC-SHA256, as far as they depend on the key alone: half of the work for a short body."""
    block = (sha256(key).digest() if len(key) > _BLOCK_BYTES else key).ljust(_BLOCK_BYTES, b"\0")
    return sha256(bytes(byte ^ 0x36 for byte in block)), sha256(
        bytes(byte ^ 0x5C for byte in block)
    )


def signature_header(
    secrets: Sequence[SigningSecret], event_id: UUID | str, timestamp: int, body: bytes
) -> str:
    """One signature for each live secret, the newest first, one space between."""
    return " ".join(signature(secret, event_id, timestamp, body) for secret in secrets)
