"""The one exception of the kit's checks, and the closed list of its reasons."""

from enum import StrEnum


class Reason(StrEnum):
    """Why a request was refused; the values are stable."""

    BAD_BODY = "bad_body"
    BAD_HEADERS = "bad_headers"
    MISSING_ID = "missing_id"
    MISSING_TIMESTAMP = "missing_timestamp"
    MISSING_SIGNATURE = "missing_signature"
    REPEATED_HEADER = "repeated_header"
    BAD_ID = "bad_id"
    BAD_TIMESTAMP = "bad_timestamp"
    BAD_SIGNATURE = "bad_signature"
    NO_SECRETS = "no_secrets"
    BAD_SECRET = "bad_secret"
    BAD_TOLERANCE = "bad_tolerance"
    NO_MATCH = "no_match"
    TOO_OLD = "too_old"
    TOO_NEW = "too_new"
    NOT_AN_EVENT = "not_an_event"
    ID_MISMATCH = "id_mismatch"


SENTENCES = {
    Reason.BAD_BODY: "The body must be the raw bytes of the request.",
    Reason.BAD_HEADERS: "The headers must be names and values as text.",
    Reason.MISSING_ID: "The header webhook-id is missing.",
    Reason.MISSING_TIMESTAMP: "The header webhook-timestamp is missing.",
    Reason.MISSING_SIGNATURE: "The header webhook-signature is missing.",
    Reason.REPEATED_HEADER: "A webhook header is repeated.",
    Reason.BAD_ID: "The header webhook-id is not an id.",
    Reason.BAD_TIMESTAMP: "The header webhook-timestamp is not a whole number of seconds.",
    Reason.BAD_SIGNATURE: "The header webhook-signature has no signature 'v1,<base64>'.",
    Reason.NO_SECRETS: "No signing secret was given.",
    Reason.BAD_SECRET: "A signing secret must be 'whsec_' and base64 text.",
    Reason.BAD_TOLERANCE: "The time and the tolerance must be numbers of seconds.",
    Reason.NO_MATCH: "No signature matches this id, timestamp and body with a trusted secret.",
    Reason.TOO_OLD: "The timestamp is too far in the past.",
    Reason.TOO_NEW: "The timestamp is too far in the future.",
    Reason.NOT_AN_EVENT: "The body is not an event: JSON with id, type, createdAt and data.",
    Reason.ID_MISMATCH: "The id of the event in the body differs from the header webhook-id.",
}


class VerificationFailed(Exception):
    """The request must be rejected; `reason` is a stable code."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(SENTENCES[reason])
        self.reason = reason

    def __reduce__(self) -> tuple[type["VerificationFailed"], tuple[Reason]]:
        return VerificationFailed, (self.reason,)
