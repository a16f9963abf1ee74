"""The possible original forms of a body that was changed in transit."""

import json
import re
import unicodedata
import zlib
from collections.abc import Iterator
from itertools import product
from typing import Any

from cuepost_receiver.doctor.causes import Cause
from cuepost_receiver.signing_key import canonical_base64

BOM = b"\xef\xbb\xbf"
MOST_DECOMPRESSED = 1 << 20
# To sort a long run of combining characters takes the square of its length.
MOST_NORMALISED = 8_192
# The order in which the service writes keys, at every depth.
KEY_ORDER = (
    "id",
    "type",
    "createdAt",
    "data",
    "projectId",
    "webhookId",
    "status",
    "stage",
    "resultUrl",
    "error",
    "code",
    "message",
    "failingSince",
    "recoveredAt",
)
SEPARATORS = ((",", ":"), (", ", ": "))
CHARSETS = ("cp1252", "latin-1", "utf-16", "utf-16-le", "utf-16-be", "utf-32")

_ESCAPED = re.compile(rb"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SHORT = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}

Variant = tuple[Cause, bytes]


def body_variants(body: bytes) -> Iterator[Variant]:
    """Variants of the body, most likely first, without the body itself."""
    for source in (_ends, _line_ends, _marks, _wrapped, _charsets, _rewritten):
        yield from ((cause, variant) for cause, variant in source(body) if variant != body)


def as_the_service_writes(body: bytes) -> bytes | None:
    """The same JSON as the service serialises it; None if it is not JSON."""
    return next(iter(_json_forms(body)), None)


def _ends(body: bytes) -> Iterator[Variant]:
    yield Cause.BODY_TRAILING_NEWLINE, body.rstrip(b"\r\n")
    yield Cause.BODY_TRAILING_NEWLINE, body.removesuffix(b"\n").removesuffix(b"\r")
    for end in (b"\n", b"\r\n"):
        yield Cause.BODY_TRAILING_NEWLINE, body + end
    yield Cause.BODY_WHITESPACE, body.strip()
    yield Cause.BODY_WHITESPACE, body + b" "


def _line_ends(body: bytes) -> Iterator[Variant]:
    lines = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for end in (b"\n", b"\r\n", b"\r"):
        yield Cause.BODY_LINE_ENDINGS, lines.replace(b"\n", end)
    yield Cause.BODY_LINE_ENDINGS, lines.rstrip(b"\n")


def _marks(body: bytes) -> Iterator[Variant]:
    yield Cause.BODY_BOM, body.removeprefix(BOM)
    yield Cause.BODY_BOM, body.removeprefix(BOM).strip()
    yield Cause.BODY_BOM, BOM + body


def _wrapped(body: bytes) -> Iterator[Variant]:
    inner = _literal(body)
    if inner is not None:
        yield Cause.BODY_QUOTED, inner
    decoded = canonical_base64(body.strip().decode("latin-1"))
    if decoded is not None:
        yield Cause.BODY_BASE64, decoded
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        try:
            plain = zlib.decompressobj(window).decompress(body, MOST_DECOMPRESSED)
        except zlib.error:
            continue
        yield Cause.BODY_COMPRESSED, plain


def _charsets(body: bytes) -> Iterator[Variant]:
    for charset in CHARSETS:
        for source, target in (("utf-8", charset), (charset, "utf-8"), (charset, "utf-8-sig")):
            try:
                yield Cause.BODY_CHARSET, body.decode(source).encode(target)
            except UnicodeError:
                continue


def _rewritten(body: bytes) -> Iterator[Variant]:
    for form in _json_forms(body):
        yield Cause.BODY_REWRITTEN, form
    if len(body) > MOST_NORMALISED:
        return
    text = body.decode(errors="replace")
    for normal in ("NFC", "NFD"):
        yield Cause.BODY_REWRITTEN, unicodedata.normalize(normal, text).encode()


def _json_forms(body: bytes) -> list[bytes]:
    """Serialisations of the JSON: first that of the service, then other common ones."""
    try:
        parsed = json.loads(body.decode("utf-8-sig"))
        forms = product((_in_order(parsed), parsed), (False, True), SEPARATORS)
        return [
            json.dumps(content, ensure_ascii=ascii_only, separators=separators).encode()
            for content, ascii_only, separators in forms
        ]
    except (ValueError, RecursionError):
        return []


def _in_order(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_order(each) for each in value]
    if not isinstance(value, dict):
        return value
    known = set(value) <= set(KEY_ORDER)
    names = sorted(value, key=KEY_ORDER.index) if known else value
    return {name: _in_order(value[name]) for name in names}


def _literal(body: bytes) -> bytes | None:
    """The content of a string literal of JSON or JavaScript, or of a bytes literal of Python."""
    found = re.fullmatch(rb"""b?(['"])(.*)\1""", body.strip(), re.DOTALL)
    return _ESCAPED.sub(_unescaped, found[2]) if found else None


def _unescaped(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    if len(code) == 1:
        return _SHORT.get(code, code)
    number = int(code[1:], 16)
    return bytes([number]) if code[:1] == b"x" else chr(number).encode(errors="replace")
