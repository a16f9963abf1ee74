"""Secrets at rest: AES-256-GCM under master keys that can be rotated.

A sealed value is `key id (4 bytes) | nonce (12) | ciphertext and tag`. The first key seals, every
key opens.
"""

import hashlib
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cuepost.ports.system import KEY_ID_BYTES, CannotOpen, Entropy

KEY_BYTES = 32
_ID, _NONCE = KEY_ID_BYTES, 12


class AesGcmBox:
    def __init__(self, master_keys: Sequence[bytes], entropy: Entropy) -> None:
        self._ciphers = {_key_id(key): AESGCM(key) for key in master_keys}
        self._sealing_id = _key_id(master_keys[0])
        self._entropy = entropy

    @property
    def key_ids(self) -> Sequence[bytes]:
        return tuple(self._ciphers)

    def seal(self, plain: bytes, context: bytes) -> bytes:
        nonce = self._entropy(_NONCE)
        sealed = self._ciphers[self._sealing_id].encrypt(nonce, plain, context)
        return self._sealing_id + nonce + sealed

    def open(self, sealed: bytes, context: bytes) -> bytes:
        cipher = self._ciphers.get(sealed[:_ID])
        if cipher is None:
            raise CannotOpen
        try:
            return cipher.decrypt(sealed[_ID : _ID + _NONCE], sealed[_ID + _NONCE :], context)
        except (InvalidTag, ValueError):
            raise CannotOpen from None


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"cuepost master key id\0" + key).digest()[:_ID]
