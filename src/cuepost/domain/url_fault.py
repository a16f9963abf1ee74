"""Why a receiver URL is refused: a closed list, and a message for each that says how to fix it."""

from enum import StrEnum


class UrlFault(StrEnum):
    TOO_LONG = "url_too_long"
    HAS_CONTROL_CHARACTERS = "url_has_control_characters"
    HAS_SPACES = "url_has_spaces"
    HAS_LONE_SURROGATES = "url_has_lone_surrogates"
    HAS_BACKSLASH = "url_has_backslash"
    HAS_FRAGMENT = "url_has_fragment"
    NOT_ABSOLUTE = "url_not_absolute"
    SCHEME_NOT_HTTPS = "url_scheme_not_https"
    HAS_CREDENTIALS = "url_has_credentials"
    PORT_INVALID = "url_port_invalid"
    PORT_NOT_ALLOWED = "url_port_not_allowed"
    HAS_ZONE_ID = "url_has_zone_id"
    ADDRESS_NOT_PUBLIC = "url_address_not_public"
    HOST_MISSING = "url_host_missing"
    HOST_INVALID = "url_host_invalid"
    HOST_TRAILING_DOT = "url_host_trailing_dot"
    HOST_PERCENT_ENCODED = "url_host_percent_encoded"
    HOST_DISGUISED_ADDRESS = "url_host_disguised_address"
    HOST_NOT_PUBLIC = "url_host_not_public"


SENTENCES: dict[UrlFault, str] = {
    UrlFault.TOO_LONG: "The URL is longer than 2,048 characters; shorten its path or query.",
    UrlFault.HAS_CONTROL_CHARACTERS: (
        "The URL contains control characters or invisible ones (tabs, line ends, zero-width marks);"
        " remove them, or type the URL instead of pasting it."
    ),
    UrlFault.HAS_SPACES: (
        "The URL contains spaces; remove them, or write %20 where the path needs one."
    ),
    UrlFault.HAS_LONE_SURROGATES: (
        "The URL contains half of a character (a lone surrogate); send it as valid Unicode text."
    ),
    UrlFault.HAS_BACKSLASH: (
        "The URL contains a backslash; write / between the parts of the path, or %5C instead of it."
    ),
    UrlFault.HAS_FRAGMENT: (
        "The URL has a fragment (#…), which is never sent to a server; remove it."
    ),
    UrlFault.NOT_ABSOLUTE: (
        "The URL is not complete; write it from the start, like https://hooks.example.com/cuepost."
    ),
    UrlFault.SCHEME_NOT_HTTPS: "Receivers are called over HTTPS only; start the URL with https://.",
    UrlFault.HAS_CREDENTIALS: (
        "The URL contains a user name or password before an @; remove them, and check the signature"
        " of each delivery instead."
    ),
    UrlFault.PORT_INVALID: (
        "The port is not a number from 1 to 65535; correct it, or leave it and its colon out."
    ),
    UrlFault.PORT_NOT_ALLOWED: (
        "Receivers cannot be called on this port; use an allowed one, usually 443."
    ),
    UrlFault.HAS_ZONE_ID: (
        "The address has a zone id (%…), which has a meaning on one machine only; use a public"
        " address or a DNS name."
    ),
    UrlFault.ADDRESS_NOT_PUBLIC: (
        "This address is private, loopback or reserved, and cuepost cannot reach it from outside;"
        " use a public one, or run `cuepost listen`, which forwards events to a receiver on your"
        " own machine."
    ),
    UrlFault.HOST_MISSING: "The URL names no host; write one after https://.",
    UrlFault.HOST_INVALID: (
        "The host is not a valid name: each part between two dots has 1 to 63 letters, digits or"
        " inner hyphens, and the name at most 253 characters (an IPv6 address needs brackets)."
    ),
    UrlFault.HOST_TRAILING_DOT: "The host ends in a dot; remove the dot.",
    UrlFault.HOST_PERCENT_ENCODED: (
        "The host is percent-encoded; write its characters as they are."
    ),
    UrlFault.HOST_DISGUISED_ADDRESS: (
        "The host is an address in disguise (shortened, octal, hexadecimal, one number, or in"
        " look-alike characters); write a DNS name in plain letters, or an address as four decimal"
        " numbers without leading zeros."
    ),
    UrlFault.HOST_NOT_PUBLIC: (
        "This host (such as localhost, a single word, or a name under .local or .internal) exists"
        " only on one machine or network, and cuepost cannot reach it from outside; use a public"
        " DNS name, or run `cuepost listen`, which forwards events to a receiver on your own"
        " machine."
    ),
}


class ReceiverUrlRefused(Exception):
    """The receiver URL may not be called."""

    def __init__(self, code: UrlFault, message: str | None = None) -> None:
        super().__init__(message or SENTENCES[code])
        self.code = code
