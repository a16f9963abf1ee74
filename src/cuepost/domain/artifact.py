"""The files that an export makes: how they may be named, and under which keys they may lie."""

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import quote

from cuepost.domain.errors import FieldError

LONGEST_NAME = 255
LONGEST_KEY = 1024

# Control characters, ends of lines, and what turns the reading direction: a name is to be what it
# looks like. Backslashes are folders to some.
_UNSOUND = r"\\\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
_SEGMENT = rf"[^/{_UNSOUND}]{{1,255}}"
# `\Z`, because `$` would let a line end slip through.
FILE_NAME = rf"^(?!\.{{1,2}}\Z)[^/{_UNSOUND}]*\Z"
MEDIA_KEY = rf"^(?!(?:[^/]*/)*\.{{1,2}}(?:/|\Z)){_SEGMENT}(?:/{_SEGMENT})*\Z"

NAME_FAULT = ("invalid_file_name", "Give a plain file name, without a folder.")
KEY_FAULT = (
    "invalid_key",
    "Give a relative key: names with a '/' between, no '.', '..' or empty ones among them.",
)

_name, _key = re.compile(FILE_NAME), re.compile(MEDIA_KEY)
_half_pair = re.compile("[\ud800-\udfff]")
_FINGERPRINT_BYTES = 16
# What a quoted file name may hold without being read in two ways; RFC 6266, appendix D.
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
        """Tells it from every other file, and from what it was before it was exported again."""
        said = (self.kind, self.name, self.key, self.content_type, str(self.size_bytes))
        return hashlib.sha256("\0".join(said).encode()).digest()[:_FINGERPRINT_BYTES]

    @property
    def disposition(self) -> str:
        """The header that saves a download under its name (RFC 6266), whatever the name holds."""
        plain = _NOT_PLAIN.sub("_", self.name)
        if plain == self.name:
            return f'attachment; filename="{plain}"'
        return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(self.name, safe='')}"


def faults_of(name: str, key: str) -> list[FieldError]:
    """Why a file cannot be called so or lie there; empty when it can."""
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
    """Half a surrogate pair is no character, and could stand for a byte in a path."""
    return not _half_pair.search(text)
