"""Secrets at rest: AES-256-GCM under master keys that can be rotated.

A sealed value is `key id (4 bytes) | nonce (12) | ciphertext and tag`. The first key seals, every
key opens.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache

from cuepost.ports.system import KEY_ID_BYTES, CannotOpen, Entropy

KEY_BYTES = 32
_ID, _NONCE = KEY_ID_BYTES, 12


class AesGcmBox:
    def __init__(self, master_keys: Sequence[bytes], entropy: Entropy) -> None:
        self.key_ids = tuple(dict.fromkeys(map(_key_id, master_keys)))
        self._entropy = entropy
        # In a closure, so that no description of this object shows the keys.
        self._ciphers = cache(lambda: _Ciphers(master_keys))

    def seal(self, plain: bytes, context: bytes) -> bytes:
        nonce = self._entropy(_NONCE)
        sealed = self._ciphers().of[self.key_ids[0]].encrypt(nonce, plain, context)
        return self.key_ids[0] + nonce + sealed

    def open(self, sealed: bytes, context: bytes) -> bytes:
        ciphers = self._ciphers()
        cipher = ciphers.of.get(sealed[:_ID])
        if cipher is None:
            raise CannotOpen
        try:
            return cipher.decrypt(sealed[_ID : _ID + _NONCE], sealed[_ID + _NONCE :], context)
        except (ciphers.invalid, ValueError):
            raise CannotOpen from None


class _Ciphers:
    """Imports the library, which takes 8 MB; an API process may never need it."""

    def __init__(self, master_keys: Sequence[bytes]) -> None:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  # see above
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  # see above

        self.of: Mapping[bytes, AESGCM] = {_key_id(key): AESGCM(key) for key in master_keys}
        self.invalid = InvalidTag


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"cuepost master key id\0" + key).digest()[:_ID]
