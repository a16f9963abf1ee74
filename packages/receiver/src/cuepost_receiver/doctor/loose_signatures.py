"""Finds signatures in non-standard encodings."""

import binascii
import re
from base64 import b64decode, urlsafe_b64decode
from dataclasses import dataclass

from cuepost_receiver.doctor.causes import Cause
from cuepost_receiver.signing_key import SIGNATURE_BYTES

_HEX = re.compile(r"[0-9a-fA-F]{64}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{43}=")
_BASE64URL = re.compile(r"[A-Za-z0-9_+/-]{43}={0,2}")
_MARKS = re.compile(r"""^(?:v[0-9]+[=,]|sha256=|['"])+""")


@dataclass(frozen=True, slots=True)
class LooseSignature:
    cause: Cause
    raw: bytes


def loose_signatures(text: str) -> list[LooseSignature]:
    """Everything in the text that could be a signature, with the fault of its encoding."""
    found = []
    for entry in re.split(r"[\s,;]+", text):
        bare = _MARKS.sub("", entry).rstrip("'\"")
        if _HEX.fullmatch(bare):
            found.append(LooseSignature(Cause.SIGNATURE_IN_HEX, binascii.unhexlify(bare)))
        elif _BASE64.fullmatch(bare):
            found.append(LooseSignature(Cause.SIGNATURE_MALFORMED, b64decode(bare)))
        elif _BASE64URL.fullmatch(bare):
            found.append(LooseSignature(Cause.SIGNATURE_IN_BASE64URL, _from_base64url(bare)))
    return [each for each in found if len(each.raw) == SIGNATURE_BYTES]


def fault_in(text: str) -> str:
    """The obvious fault of a signature header."""
    if not text.strip():
        return "it is empty"
    if "v1," not in text:
        return "no entry begins with `v1,`"
    return "the text after `v1,` is truncated or is not base64 of 32 bytes"


def _from_base64url(text: str) -> bytes:
    return urlsafe_b64decode(text.rstrip("=").replace("+", "-").replace("/", "_") + "=")
