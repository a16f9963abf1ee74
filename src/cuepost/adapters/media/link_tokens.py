"""Tokens of download links: a grant, signed with keys that are derived from the master keys.

A token is `version (1 byte) | account (16) | project (16) | fingerprint of the file (16) | expiry
in milliseconds (6) | HMAC-SHA256 of all that (32)`, in base64 for URLs. The 87 bytes use all bits
of the 116 characters, so that no two texts decode to the same token.
"""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from functools import cache
from uuid import UUID

from cuepost.domain.instants import from_millis, to_millis
from cuepost.ports.media import Grant

_PURPOSE = b"cuepost download links"
_VERSION = b"\x01"
_END_BYTES = 6
_MAC_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{116}")


class LinkTokens:
    """The first key signs, every key is accepted: links stay valid through a rotation."""

    def __init__(self, master_keys: Sequence[bytes]) -> None:
        self._keys = cache(lambda: [_derived(key) for key in master_keys])

    def write(self, grant: Grant) -> str:
        body = b"".join(
            (
                _VERSION,
                grant.account_id.bytes,
                grant.project_id.bytes,
                grant.fingerprint,
                to_millis(grant.expires_at).to_bytes(_END_BYTES, "big"),
            )
        )
        return urlsafe_b64encode(body + _mac(self._keys()[0], body)).decode()

    def read(self, token: str) -> Grant | None:
        if not _TOKEN.fullmatch(token):
            return None
        content = urlsafe_b64decode(token)
        body, mac = content[:-_MAC_BYTES], content[-_MAC_BYTES:]
        # All keys are tried, so that the duration does not reveal which one matches.
        fits = [hmac.compare_digest(_mac(key, body), mac) for key in self._keys()]
        if not any(fits) or not body.startswith(_VERSION):
            return None
        return Grant(
            account_id=UUID(bytes=body[1:17]),
            project_id=UUID(bytes=body[17:33]),
            fingerprint=body[33:49],
            expires_at=from_millis(int.from_bytes(body[49:], "big")),
        )


def _derived(master_key: bytes) -> bytes:
    # Imported at the first use, as for secrets.
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415  # see above
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415  # see above

    return HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(master_key)


def _mac(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")
