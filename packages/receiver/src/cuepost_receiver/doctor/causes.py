"""The closed list of causes, each with a sentence for people and a way to fix it."""

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """The values are stable; `VALID` is said only of what the kit's `verify` accepts."""

    VALID = "valid"
    HEADERS_UNREADABLE = "headers_unreadable"
    HEADER_MISSING = "header_missing"
    HEADER_REPEATED = "header_repeated"
    ID_MALFORMED = "id_malformed"
    ID_OF_ANOTHER_EVENT = "id_of_another_event"
    ID_AND_TIMESTAMP_SWAPPED = "id_and_timestamp_swapped"
    TIMESTAMP_MALFORMED = "timestamp_malformed"
    TIMESTAMP_OF_ANOTHER_ATTEMPT = "timestamp_of_another_attempt"
    TIMESTAMP_TOO_OLD = "timestamp_too_old"
    TIMESTAMP_IN_FUTURE = "timestamp_in_future"
    TOLERANCE_UNUSABLE = "tolerance_unusable"
    SIGNATURE_MALFORMED = "signature_malformed"
    SIGNATURE_IN_HEX = "signature_in_hex"
    SIGNATURE_IN_BASE64URL = "signature_in_base64url"
    OTHER_HASH = "other_hash"
    OTHER_CONTENT_SIGNED = "other_content_signed"
    SECRET_MISSING = "secret_missing"
    SECRET_MALFORMED = "secret_malformed"
    SECRET_PADDED = "secret_padded"
    SECRET_IS_A_HINT = "secret_is_a_hint"
    SECRET_IS_AN_API_KEY = "secret_is_an_api_key"
    SECRET_PREFIX_KEPT = "secret_prefix_kept"
    SECRET_NOT_DECODED = "secret_not_decoded"
    PREVIOUS_SECRET = "previous_secret"
    WRONG_SECRET = "wrong_secret"
    BODY_EMPTY = "body_empty"
    BODY_REWRITTEN = "body_rewritten"
    BODY_TRAILING_NEWLINE = "body_trailing_newline"
    BODY_WHITESPACE = "body_whitespace"
    BODY_LINE_ENDINGS = "body_line_endings"
    BODY_BOM = "body_bom"
    BODY_CHARSET = "body_charset"
    BODY_QUOTED = "body_quoted"
    BODY_BASE64 = "body_base64"
    BODY_COMPRESSED = "body_compressed"
    BODY_TRUNCATED = "body_truncated"
    BODY_OF_ANOTHER_EVENT = "body_of_another_event"
    BODY_CHANGED = "body_changed"
    COMPUTED_DIFFERENTLY = "computed_differently"


@dataclass(frozen=True, slots=True)
class Words:
    sentence: str
    remedy: str


RAW_BODY = (
    "Verify the raw bytes of the request, before any JSON or text middleware touches them: "
    "`await request.body()` in FastAPI, `request.get_data()` in Flask, `request.body` in Django, "
    "`express.raw({{type: 'application/json'}})` in Express."
)
COPY_AGAIN = "Take all three webhook headers and the body from one and the same request."
SAME_CODE = (
    "Strip `whsec_`, base64-decode the rest to get the key, and compute HMAC-SHA256 over "
    "`<webhook-id>.<webhook-timestamp>.<raw body>`; or use the kit's `verify`, which does."
)
STORE_AGAIN = (
    "Use the endpoint's own secret as it was shown: `whsec_` and 44 characters. If it is lost, "
    "rotate the secret; for 24 hours the old one goes on signing too."
)
CLOCK = (
    "Let the receiver's clock follow NTP, and compare in unix seconds (UTC). If the request was "
    "kept for later, verify when it arrives and not when it is worked on."
)

WORDS = {
    Cause.VALID: Words(
        "The signature is valid: it was made with secret {secret_number} of {secret_count}, "
        "{age} ago.",
        "Nothing has to be fixed.",
    ),
    Cause.HEADERS_UNREADABLE: Words(
        "The headers could not be read as names and values.",
        "Give them as lines such as `webhook-id: 0198c0de-…`, one to a line.",
    ),
    Cause.HEADER_MISSING: Words(
        "This is missing: {missing}.{near}",
        "Pass on all three of webhook-id, webhook-timestamp and webhook-signature; see whether a "
        "proxy, a gateway or a framework drops or renames them.",
    ),
    Cause.HEADER_REPEATED: Words(
        "A webhook header is there more than once, so it is unclear which one counts.",
        "See which proxy adds headers of that name; a delivery has each of them once.",
    ),
    Cause.ID_MALFORMED: Words(
        "The value of webhook-id was changed on its way, or is not an id.",
        "Use the header byte for byte: no quotes, no change of case, no reformatting of the UUID.",
    ),
    Cause.ID_OF_ANOTHER_EVENT: Words(
        "The signature fits the id inside the body, but webhook-id names another event.",
        COPY_AGAIN,
    ),
    Cause.ID_AND_TIMESTAMP_SWAPPED: Words(
        "The id and the timestamp have changed places.",
        "The signed text is `<webhook-id>.<webhook-timestamp>.<raw body>`, in this order.",
    ),
    Cause.TIMESTAMP_MALFORMED: Words(
        "webhook-timestamp is not a whole number of unix seconds{looks_like}.",
        "Use the header as it was sent, as text, such as `1767323045`; do not parse and write it "
        "again.",
    ),
    Cause.TIMESTAMP_OF_ANOTHER_ATTEMPT: Words(
        "The signature was made for the timestamp {signed_for}; webhook-timestamp says {given}. "
        "Each attempt is signed anew, so these headers come from two attempts.",
        COPY_AGAIN,
    ),
    Cause.TIMESTAMP_TOO_OLD: Words(
        "The signature is right, but its timestamp lies {age} in the past, and {limit} are "
        "allowed: the receiver's clock is ahead, or the request is old.{zone}",
        CLOCK,
    ),
    Cause.TIMESTAMP_IN_FUTURE: Words(
        "The signature is right, but its timestamp lies {age} in the future, and {limit} are "
        "allowed: the receiver's clock is behind.{zone}",
        CLOCK,
    ),
    Cause.TOLERANCE_UNUSABLE: Words(
        "The time or the tolerance to check against is not a number of seconds.",
        "Give both in seconds; 300 is what the service suggests as tolerance.",
    ),
    Cause.SIGNATURE_MALFORMED: Words(
        "webhook-signature holds no usable signature: {fault}.",
        "It is one or more entries of the form `v1,<44 base64 characters>` with one space "
        "between; use the header as it was sent.",
    ),
    Cause.SIGNATURE_IN_HEX: Words(
        "The signature is right, but written in hexadecimal.",
        "Write the 32 bytes of the HMAC as base64, after `v1,`.",
    ),
    Cause.SIGNATURE_IN_BASE64URL: Words(
        "The signature is right, but written in the URL-safe or an unpadded form of base64.",
        "Use standard base64, with `+`, `/` and the closing `=`.",
    ),
    Cause.OTHER_HASH: Words(
        "The signature was computed with {hash} and not with SHA-256.", SAME_CODE
    ),
    Cause.OTHER_CONTENT_SIGNED: Words(
        "The signature was computed over {content} and not over id, timestamp and body.", SAME_CODE
    ),
    Cause.SECRET_MISSING: Words(
        "There is no secret to check with.",
        "Give the endpoint's signing secret, `whsec_…`. " + STORE_AGAIN,
    ),
    Cause.SECRET_MALFORMED: Words(
        "The secret is not `whsec_` and base64 text; some of it may be cut off or changed.",
        STORE_AGAIN,
    ),
    Cause.SECRET_PADDED: Words(
        "Spaces, a line end or quotes around the secret were stored with it.",
        "Trim the secret when you read it, and store it without quotes.",
    ),
    Cause.SECRET_IS_A_HINT: Words(
        "This is only the hint of the secret that lists show, not the secret.", STORE_AGAIN
    ),
    Cause.SECRET_IS_AN_API_KEY: Words(
        "This is an API key. Deliveries are signed with the endpoint's own secret, `whsec_…`.",
        STORE_AGAIN,
    ),
    Cause.SECRET_PREFIX_KEPT: Words(
        "The signature was computed with `whsec_` as a part of the key.", SAME_CODE
    ),
    Cause.SECRET_NOT_DECODED: Words(
        "The signature was computed with the text of the secret as the key, not base64-decoded.",
        SAME_CODE,
    ),
    Cause.PREVIOUS_SECRET: Words(
        "The secrets belong to different times: one of them was replaced by a rotation.",
        "Put the newest secret into the receiver; while a rotation overlaps, trust both.",
    ),
    Cause.WRONG_SECRET: Words(
        "Headers and body look as the service sends them, but were not signed with "
        "{this_secret}: most likely another endpoint's secret, or the one from before a rotation.",
        STORE_AGAIN,
    ),
    Cause.BODY_EMPTY: Words(
        "The body is empty: something read it before the signature was checked.", RAW_BODY
    ),
    Cause.BODY_REWRITTEN: Words(
        "The body was parsed and written again: same JSON, other bytes.", RAW_BODY
    ),
    Cause.BODY_TRAILING_NEWLINE: Words(
        "A line end at the end of the body was added or lost.",
        RAW_BODY + " Many editors and `echo` add one; use `printf %s` or `--data-binary`.",
    ),
    Cause.BODY_WHITESPACE: Words(
        "Spaces or line ends around the body were added or lost.", RAW_BODY
    ),
    Cause.BODY_LINE_ENDINGS: Words(
        "The line ends inside the body were changed between LF and CRLF.",
        RAW_BODY + " Open files in binary mode.",
    ),
    Cause.BODY_BOM: Words(
        "A byte order mark at the beginning of the body was added or lost.",
        RAW_BODY + " Save files as UTF-8 without BOM.",
    ),
    Cause.BODY_CHARSET: Words(
        "The body was decoded or encoded in another charset than UTF-8.", RAW_BODY
    ),
    Cause.BODY_QUOTED: Words(
        "The body was written as a string literal: quoted and escaped once more.", RAW_BODY
    ),
    Cause.BODY_BASE64: Words(
        "The body is base64-encoded, as some gateways hand it on.",
        "Decode it first; on AWS API Gateway look at `isBase64Encoded`.",
    ),
    Cause.BODY_COMPRESSED: Words(
        "The body is compressed; the service signs and sends it plain.",
        "Find the proxy that compresses requests and switch that off, or decompress first.",
    ),
    Cause.BODY_TRUNCATED: Words(
        "The body ends in the middle: a part of it is missing.",
        "Read the request to its end, and see which size limit cuts it off. " + RAW_BODY,
    ),
    Cause.BODY_OF_ANOTHER_EVENT: Words(
        "The body is the event {body_id}, but webhook-id is {header_id}: they do not belong "
        "together.",
        COPY_AGAIN,
    ),
    Cause.BODY_CHANGED: Words(
        "The signature does not fit, and the body is not in the form in which the service sends "
        "it: it was changed, or the secret is another one.",
        RAW_BODY,
    ),
    Cause.COMPUTED_DIFFERENTLY: Words(
        "The delivery itself is valid, but your code computed another signature for it.",
        SAME_CODE,
    ),
}
