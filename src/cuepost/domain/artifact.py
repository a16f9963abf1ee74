"""The files that an export makes, and which file names and keys are allowed."""

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import quote

from cuepost.domain.errors import FieldError

LONGEST_NAME = 255
LONGEST_KEY = 1024

# Control characters, line ends and marks that change the reading direction, because a name must be
# what it looks like; and the backslash, which separates folders on some systems.
_FORBIDDEN = r"\\\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
_SEGMENT = rf"[^/{_FORBIDDEN}]{{1,255}}"
# `\Z`, because `$` would also match before a line end.
FILE_NAME = rf"^(?!\.{{1,2}}\Z)[^/{_FORBIDDEN}]*\Z"
MEDIA_KEY = rf"^(?!(?:[^/]*/)*\.{{1,2}}(?:/|\Z)){_SEGMENT}(?:/{_SEGMENT})*\Z"

NAME_FAULT = ("invalid_file_name", "Give a plain file name, without a folder.")
KEY_FAULT = (
    "invalid_key",
    "Give a relative key: names separated by '/', without empty names, '.' or '..'.",
)

_name, _key = re.compile(FILE_NAME), re.compile(MEDIA_KEY)
_half_pair = re.compile("[\ud800-\udfff]")
_FINGERPRINT_BYTES = 16
# Everything but the characters that all clients read alike in a quoted name; RFC 6266, appendix D.
_NOT_PLAIN = re.compile(r"[^ !#$&'()+,.0-9;=@A-Z\[\]^_`a-z{}~-]")


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that an export made, by its key in the media store."""

    kind: str
    name: str
    key: str
    content_type: str
    size_bytes: int

    @property
    def fingerprint(self) -> bytes:
        """Differs from every other file's, and changes when a new export replaces the file."""
        fields = (self.kind, self.name, self.key, self.content_type, str(self.size_bytes))
        return hashlib.sha256("\0".join(fields).encode()).digest()[:_FINGERPRINT_BYTES]

    @property
    def disposition(self) -> str:
        """The value of Content-Disposition (RFC 6266), for any file name."""
        plain = _NOT_PLAIN.sub("_", self.name)
        if plain == self.name:
            return f'attachment; filename="{plain}"'
        return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(self.name, safe='')}"


def faults_of(name: str, key: str) -> list[FieldError]:
    """What is wrong with the name and the key; empty if both are allowed."""
    faults = []
    if not is_file_name(name):
        faults.append(FieldError("name", *NAME_FAULT))
    if not is_media_key(key):
        faults.append(FieldError("key", *KEY_FAULT))
    return faults


def is_file_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_NAME and _is_text(text) and bool(_name.match(text))


def is_media_key(text: str) -> bool:
    return len(text) <= LONGEST_KEY and _is_text(text) and bool(_key.match(text))


def _is_text(text: str) -> bool:
    """A lone surrogate is not a character, and Python may use it for a byte of a path."""
    return not _half_pair.search(text)
