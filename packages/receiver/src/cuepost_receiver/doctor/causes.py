"""The closed list of causes, each with an explanation and a fix."""

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """The values are stable; `VALID` means that the kit's `verify` accepts the delivery."""

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
COPY_AGAIN = "Take all three webhook headers and the body from the same request."
SAME_CODE = (
    "Strip `whsec_`, base64-decode the rest to get the key, and compute HMAC-SHA256 over "
    "`<webhook-id>.<webhook-timestamp>.<raw body>`; or use the kit's `verify`, which does this."
)
STORE_AGAIN = (
    "Use the endpoint's own secret as it was shown: `whsec_` and 44 characters. If it is lost, "
    "rotate the secret; the old one also signs for another 24 hours."
)
CLOCK = (
    "Synchronise the receiver's clock with NTP, and compare in unix seconds (UTC). If requests "
    "are queued, verify them when they arrive and not when they are processed."
)

WORDS = {
    Cause.VALID: Words(
        "The signature is valid: it was made with secret {secret_number} of {secret_count}, "
        "{age} ago.",
        "Nothing has to be fixed.",
    ),
    Cause.HEADERS_UNREADABLE: Words(
        "The headers could not be read as names and values.",
        "Pass them as lines such as `webhook-id: 0198c0de-…`, one per line.",
    ),
    Cause.HEADER_MISSING: Words(
        "Missing: {missing}.{near}",
        "Pass on webhook-id, webhook-timestamp and webhook-signature; check whether a proxy, a "
        "gateway or a framework drops or renames them.",
    ),
    Cause.HEADER_REPEATED: Words(
        "A webhook header is repeated, so it is unclear which value is right.",
        "Check which proxy adds headers with that name; a delivery has each of them once.",
    ),
    Cause.ID_MALFORMED: Words(
        "The value of webhook-id was changed in transit, or is not an id.",
        "Use the header byte for byte: no quotes, no change of case, no reformatting of the UUID.",
    ),
    Cause.ID_OF_ANOTHER_EVENT: Words(
        "The signature matches the id in the body, but webhook-id is the id of another event.",
        COPY_AGAIN,
    ),
    Cause.ID_AND_TIMESTAMP_SWAPPED: Words(
        "The id and the timestamp are swapped.",
        "The signed text is `<webhook-id>.<webhook-timestamp>.<raw body>`, in this order.",
    ),
    Cause.TIMESTAMP_MALFORMED: Words(
        "webhook-timestamp is not a whole number of unix seconds{looks_like}.",
        "Use the header as it was sent, as text, such as `1767323045`; do not parse and "
        "reformat it.",
    ),
    Cause.TIMESTAMP_OF_ANOTHER_ATTEMPT: Words(
        "The signature was made for the timestamp {signed_for}; webhook-timestamp says {given}. "
        "Each attempt has its own signature, so these headers come from two attempts.",
        COPY_AGAIN,
    ),
    Cause.TIMESTAMP_TOO_OLD: Words(
        "The signature is right, but its timestamp is {age} in the past, and {limit} are "
        "allowed: the receiver's clock is ahead, or the request is old.{zone}",
        CLOCK,
    ),
    Cause.TIMESTAMP_IN_FUTURE: Words(
        "The signature is right, but its timestamp is {age} in the future, and {limit} are "
        "allowed: the receiver's clock is behind.{zone}",
        CLOCK,
    ),
    Cause.TOLERANCE_UNUSABLE: Words(
        "The time or the tolerance to check against is not a number of seconds.",
        "Pass both in seconds; the recommended tolerance is 300.",
    ),
    Cause.SIGNATURE_MALFORMED: Words(
        "webhook-signature contains no usable signature: {fault}.",
        "It has one or more entries of the form `v1,<44 base64 characters>`, separated by "
        "spaces; use the header as it was sent.",
    ),
    Cause.SIGNATURE_IN_HEX: Words(
        "The signature is right, but encoded in hexadecimal.",
        "Encode the 32 bytes of the HMAC in base64, after `v1,`.",
    ),
    Cause.SIGNATURE_IN_BASE64URL: Words(
        "The signature is right, but encoded in URL-safe or unpadded base64.",
        "Use standard base64, with `+`, `/` and the closing `=`.",
    ),
    Cause.OTHER_HASH: Words(
        "The signature was computed with {hash} and not with SHA-256.", SAME_CODE
    ),
    Cause.OTHER_CONTENT_SIGNED: Words(
        "The signature was computed over {content} and not over id, timestamp and body.", SAME_CODE
    ),
    Cause.SECRET_MISSING: Words(
        "No secret was given.",
        "Pass the endpoint's signing secret, `whsec_…`. " + STORE_AGAIN,
    ),
    Cause.SECRET_MALFORMED: Words(
        "The secret is not `whsec_` and base64 text; it may be truncated or changed.",
        STORE_AGAIN,
    ),
    Cause.SECRET_PADDED: Words(
        "The stored secret has spaces, a line break or quotes around it.",
        "Trim the secret when you read it, and store it without quotes.",
    ),
    Cause.SECRET_IS_A_HINT: Words(
        "This is only the hint of the secret, which lists show, not the secret.", STORE_AGAIN
    ),
    Cause.SECRET_IS_AN_API_KEY: Words(
        "This is an API key. Deliveries are signed with the endpoint's own secret, `whsec_…`.",
        STORE_AGAIN,
    ),
    Cause.SECRET_PREFIX_KEPT: Words(
        "The signature was computed with `whsec_` as part of the key.", SAME_CODE
    ),
    Cause.SECRET_NOT_DECODED: Words(
        "The signature was computed with the text of the secret as the key, not base64-decoded.",
        SAME_CODE,
    ),
    Cause.PREVIOUS_SECRET: Words(
        "The delivery and the receiver use different secrets: one was replaced by a rotation.",
        "Configure the newest secret in the receiver; accept both during a rotation.",
    ),
    Cause.WRONG_SECRET: Words(
        "Headers and body look as the service sends them, but were not signed with "
        "{this_secret}: most likely it is of another endpoint, or from before a rotation.",
        STORE_AGAIN,
    ),
    Cause.BODY_EMPTY: Words(
        "The body is empty: something read it before the signature was checked.", RAW_BODY
    ),
    Cause.BODY_REWRITTEN: Words(
        "The body was parsed and serialised again: same JSON, different bytes.", RAW_BODY
    ),
    Cause.BODY_TRAILING_NEWLINE: Words(
        "A line break at the end of the body was added or removed.",
        RAW_BODY + " Many editors and `echo` add one; use `printf %s` or `--data-binary`.",
    ),
    Cause.BODY_WHITESPACE: Words("White space around the body was added or removed.", RAW_BODY),
    Cause.BODY_LINE_ENDINGS: Words(
        "The line endings inside the body were changed between LF and CRLF.",
        RAW_BODY + " Open files in binary mode.",
    ),
    Cause.BODY_BOM: Words(
        "A byte order mark at the beginning of the body was added or removed.",
        RAW_BODY + " Save files as UTF-8 without BOM.",
    ),
    Cause.BODY_CHARSET: Words(
        "The body was decoded or encoded in a charset other than UTF-8.", RAW_BODY
    ),
    Cause.BODY_QUOTED: Words(
        "The body was encoded as a string literal: quoted and escaped again.", RAW_BODY
    ),
    Cause.BODY_BASE64: Words(
        "The body is base64-encoded, as some gateways pass it on.",
        "Decode it first; on AWS API Gateway check `isBase64Encoded`.",
    ),
    Cause.BODY_COMPRESSED: Words(
        "The body is compressed; the service signs and sends it uncompressed.",
        "Disable compression of requests in the proxy that does it, or decompress first.",
    ),
    Cause.BODY_TRUNCATED: Words(
        "The body is truncated.",
        "Read the whole request, and check which size limit truncates it. " + RAW_BODY,
    ),
    Cause.BODY_OF_ANOTHER_EVENT: Words(
        "The body is the event {body_id}, but webhook-id is {header_id}: they do not belong "
        "together.",
        COPY_AGAIN,
    ),
    Cause.BODY_CHANGED: Words(
        "The signature does not match, and the body is not in the form that the service sends: "
        "it was changed, or the secret is wrong.",
        RAW_BODY,
    ),
    Cause.COMPUTED_DIFFERENTLY: Words(
        "The delivery is valid, but your code computed a different signature.",
        SAME_CODE,
    ),
}
