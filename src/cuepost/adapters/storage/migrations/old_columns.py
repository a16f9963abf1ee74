"""Expressions that turn the columns of revision 0006 into those of revision 0007.

The lists of values are those of revision 0006; they do not follow the domain.
"""

from collections.abc import Mapping

STATUSES = ("pending", "delivering", "retrying", "delivered", "failed", "cancelled")
TRIGGERS = ("automatic", "manual", "test")
CANCEL_REASONS = (
    "endpoint_disabled",
    "project_deleted",
    "project_access_expired",
    "access_closed",
)
EVENT_TYPES = (
    "project.completed",
    "project.failed",
    "project.ready",
    "project.cancelled",
    "webhook.test",
)
OUTCOMES = (
    "delivered",
    "http_error",
    "redirect",
    "timeout",
    "dns_error",
    "connect_error",
    "tls_error",
    "blocked_destination",
    "protocol_error",
    "interrupted",
    "superseded",
)
TLS_FAULTS = (
    "certificate_expired",
    "certificate_not_yet_valid",
    "certificate_wrong_host",
    "certificate_unknown_authority",
    "tls_too_old",
    "tls_handshake_failed",
)
SILENCE_REASONS = (
    "not_subscribed",
    "standalone_transcript",
    "project_deleted",
    "project_access_expired",
    "no_event_for_status",
    "illegal_transition",
    "project_not_found",
    "invalid",
    "report_id_reused",
    "endpoint_disabled",
    "access_closed",
)
KINDS = ("video", "transcript")
ORIGINS = ("app", "api", "mcp")
PROJECT_STATUSES = (
    "queued",
    "processing",
    "ready",
    "exporting",
    "completed",
    "failed",
    "cancelled",
)
STAGES = ("processing", "export")


def code(column: str, values: tuple[str, ...]) -> str:
    cases = " ".join(f"WHEN '{each}' THEN {place}" for place, each in enumerate(values, start=1))
    return f"CASE {column} {cases} END"


def as_they_are(*names: str) -> dict[str, str]:
    return {name: f'old."{name}"' for name in names}


PROJECT_COLUMNS = as_they_are(
    "account_id",
    "id",
    "name",
    "access_expires_at",
    "created_at",
    "updated_at",
    "deleted_at",
    "access_ended_at",
    "exported_at",
) | {
    "kind": code("old.kind", KINDS),
    "origin": code("old.origin", ORIGINS),
    "status": code("old.status", PROJECT_STATUSES),
    "stage": code("old.stage", STAGES),
}
ACCOUNT = {"account": "accounts.number"}
ENDPOINT = {"endpoint": "endpoints.number"}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "events": ACCOUNT
    | as_they_are("id", "project_id", "occurred_at", "body")
    | {"type": code("old.type", EVENT_TYPES), "reason": code("old.reason", SILENCE_REASONS)},
    "deliveries": ACCOUNT
    | ENDPOINT
    | as_they_are(
        "id",
        "event_id",
        "project_id",
        "attempt_count",
        "budget",
        "delivered_at",
        "finished_at",
    )
    | {
        "event_type": code("old.event_type", EVENT_TYPES),
        "trigger": code('old."trigger"', TRIGGERS),
        "status": code("old.final_status", STATUSES),
        "reason": code("old.reason", CANCEL_REASONS),
    },
    "attempts": ACCOUNT
    | as_they_are(
        "delivery_id",
        "budget",
        "number",
        "started_at",
        "duration_ms",
        "dns_ms",
        "connect_ms",
        "tls_ms",
        "first_byte_ms",
        "signed_with",
        "request_headers",
        "response_status",
        "response_headers",
        "response_body",
        "response_truncated",
        "url",
        "held_by",
    )
    | {
        "trigger": code('old."trigger"', TRIGGERS),
        "outcome": code("old.outcome", OUTCOMES),
        "tls_fault": code("old.tls_fault", TLS_FAULTS),
    },
    "reports": ACCOUNT
    | as_they_are("report_id", "event_id", "created_at", "digest")
    | {"reason": code("old.reason", SILENCE_REASONS)},
}
