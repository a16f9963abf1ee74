"""A finding of the explanation: a cause, a sentence and a fix."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from cuepost.domain.attempt import Attempt
from cuepost.domain.delivery import Delivery


class FindingCause(StrEnum):
    DELIVERED = "delivered"
    NOT_SENT_YET = "not_sent_yet"
    ACCESS_CLOSED = "access_closed"
    ACCESS_WAS_CLOSED = "access_was_closed"
    NO_ENDPOINT = "no_endpoint"
    NOT_SUBSCRIBED = "not_subscribed"
    SUBSCRIBED_LATER = "subscribed_later"
    ENDPOINT_DISABLED = "endpoint_disabled"
    NOTHING_HAPPENED = "nothing_happened"
    NOT_EXPORTED_YET = "not_exported_yet"
    EXPORT_FAILED = "export_failed"
    PROJECT_CANCELLED = "project_cancelled"
    PROJECT_DELETED = "project_deleted"
    PROJECT_ACCESS_EXPIRED = "project_access_expired"
    STANDALONE_TRANSCRIPT = "standalone_transcript"
    HISTORY_GONE = "history_gone"
    WRONG_PATH = "wrong_path"
    RECEIVER_REFUSED = "receiver_refused"
    METHOD_NOT_ACCEPTED = "method_not_accepted"
    RECEIVER_BUSY = "receiver_busy"
    RECEIVER_ERROR = "receiver_error"
    HTTP_ERROR = "http_error"
    REDIRECT = "redirect"
    TIMEOUT = "timeout"
    CONNECT_ERROR = "connect_error"
    TLS_ERROR = "tls_error"
    CERTIFICATE_EXPIRED = "certificate_expired"
    CERTIFICATE_NOT_YET_VALID = "certificate_not_yet_valid"
    CERTIFICATE_WRONG_HOST = "certificate_wrong_host"
    CERTIFICATE_UNKNOWN_AUTHORITY = "certificate_unknown_authority"
    TLS_TOO_OLD = "tls_too_old"
    TLS_HANDSHAKE_FAILED = "tls_handshake_failed"
    BLOCKED_DESTINATION = "blocked_destination"
    PROTOCOL_ERROR = "protocol_error"
    INTERRUPTED = "interrupted"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Finding:
    """`attempt` is the last attempt, if the receiver or the connection to it is the cause."""

    cause: FindingCause
    sentence: str
    fix: str
    webhook_id: UUID | None = None
    delivery: Delivery | None = None
    attempt: Attempt | None = None
