"""Host names of receivers: which are allowed, and their stored form in punycode.

International names follow IDNA 2008 (RFC 5892) as far as Python's Unicode tables allow, but more
strictly: characters that depend on their neighbours (joiners, middle dots) and emoji are refused,
also in an `xn--` label. A character that Unicode compatibility rules map to another one is refused
as a disguised address.
"""

import re
from unicodedata import category, normalize

from cuepost.domain.url_fault import ReceiverUrlRefused, UrlFault

LONGEST_NAME = 253
LONGEST_LABEL = 63

# RFC 2606, 6761, 6762, 7686 and 9476; arpa includes home.arpa (RFC 8375) and the reverse names
_RESERVED = {"localhost", "local", "test", "invalid", "example", "onion", "alt", "arpa"}
# reserved for private networks by ICANN and by RFC 6762, appendix G
_PRIVATE = {"internal", "intranet", "private", "corp", "home", "lan", "mail"}
# used by operating systems and clusters
_CUSTOMARY = {"localdomain", "localdomain4", "localdomain6", "svc"}
SPECIAL_USE_SUFFIXES = frozenset(_RESERVED | _PRIVATE | _CUSTOMARY)

_PLAIN_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PUNYCODE_PREFIX = "xn--"
_IDEOGRAPHIC_FULL_STOP = "\u3002"

_LETTER_AND_DIGIT_CATEGORIES = frozenset({"Ll", "Lo", "Lm", "Mn", "Mc", "Nd"})
_ALLOWED_BY_NAME = frozenset("-ßς〇")
_REFUSED_BY_NAME = re.compile(
    "[\u0640\u07fa\u302e\u302f\u3031-\u3035\u303b"  # stretching and repetition marks
    "\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"  # invisible
    "\u20d0-\u20ff\U0001d100-\U0001d24f"  # marks on symbols and musical notes
    "\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\u3164\uffa0]"  # parts of Hangul syllables, fillers
)


def normalise_host_name(host: str) -> str:
    """The name in lower case and punycode; raises ReceiverUrlRefused for an invalid name."""
    if "%" in host:
        raise ReceiverUrlRefused(UrlFault.HOST_PERCENT_ENCODED)
    if host.endswith("."):
        raise ReceiverUrlRefused(UrlFault.HOST_TRAILING_DOT)
    if not host.isascii() and _imitates_ascii(host):
        raise ReceiverUrlRefused(UrlFault.HOST_DISGUISED_ADDRESS)
    labels = [_stored_label(label) for label in host.split(".")]
    # A resolver may read any name that ends in a number as an IPv4 address.
    if _NUMBER.fullmatch(labels[-1]):
        raise ReceiverUrlRefused(UrlFault.HOST_DISGUISED_ADDRESS)
    name = ".".join(labels)
    if len(name) > LONGEST_NAME:
        raise ReceiverUrlRefused(UrlFault.HOST_INVALID)
    return name


def is_local_name(name: str) -> bool:
    """Whether a normalised name has a meaning only inside one machine or network."""
    _, dot, suffix = name.rpartition(".")
    return not dot or suffix in SPECIAL_USE_SUFFIXES


def _imitates_ascii(host: str) -> bool:
    return _IDEOGRAPHIC_FULL_STOP in host or any(
        not character.isascii() and any(part.isascii() for part in normalize("NFKC", character))
        for character in host
    )


def _stored_label(label: str) -> str:
    if not label.isascii():
        return _to_punycode(_lower(label))
    lowered = label.lower()
    if not _PLAIN_LABEL.fullmatch(lowered) or len(lowered) > LONGEST_LABEL:
        raise ReceiverUrlRefused(UrlFault.HOST_INVALID)
    if lowered.startswith(_PUNYCODE_PREFIX) and _to_punycode(_from_punycode(lowered)) != lowered:
        raise ReceiverUrlRefused(UrlFault.HOST_INVALID)
    return lowered


def _lower(label: str) -> str:
    # By character: str.lower() of a whole word uses the final sigma, which is another name.
    return normalize("NFC", "".join(character.lower() for character in label))


def _to_punycode(label: str) -> str:
    if normalize("NFKC", label) != label or label.isdigit():
        raise ReceiverUrlRefused(UrlFault.HOST_DISGUISED_ADDRESS)
    stored = _PUNYCODE_PREFIX + label.encode("punycode").decode("ascii")
    if not _is_international(label) or len(stored) > LONGEST_LABEL:
        raise ReceiverUrlRefused(UrlFault.HOST_INVALID)
    return stored


def _from_punycode(label: str) -> str:
    try:
        return label.removeprefix(_PUNYCODE_PREFIX).encode("ascii").decode("punycode")
    except UnicodeError:
        raise ReceiverUrlRefused(UrlFault.HOST_INVALID) from None


def _is_international(label: str) -> bool:
    return (
        all(map(_may_stand_in_label, label))
        and not label.startswith("-")
        and not label.endswith("-")
        and label[2:4] != "--"
        and not category(label[0]).startswith("M")
    )


def _may_stand_in_label(character: str) -> bool:
    return character in _ALLOWED_BY_NAME or (
        category(character) in _LETTER_AND_DIGIT_CATEGORIES
        and normalize("NFKC", character.casefold()) == character
        and not _REFUSED_BY_NAME.match(character)
    )
