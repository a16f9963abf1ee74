"""Decodes signing secrets and computes signatures."""

import hmac
from base64 import b64decode, b64encode

PREFIX = "whsec_"
SIGNATURE_BYTES = 32


def key_of(secret: str) -> bytes:
    """The key bytes of a secret; raises ValueError, which never repeats the secret."""
    key = canonical_base64(secret.removeprefix(PREFIX))
    if not key:
        raise ValueError("a signing secret is 'whsec_' and base64 text")
    return key


def canonical_base64(text: str) -> bytes | None:
    """The decoded bytes; None unless the text is canonical base64."""
    try:
        found = b64decode(text, validate=True)
    except ValueError:
        return None
    return found if b64encode(found).decode() == text else None


def digest(key: bytes, event_id: str, timestamp: str, body: bytes) -> bytes:
    return hmac_sha256(key, f"{event_id}.{timestamp}.".encode() + body)


def hmac_sha256(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")
