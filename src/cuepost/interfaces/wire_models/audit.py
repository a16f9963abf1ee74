"""The audit trail of an account."""

from collections.abc import Mapping
from uuid import UUID

from cuepost.domain.audit import Action
from cuepost.domain.audit import AuditEntry as StoredEntry
from cuepost.domain.instants import to_text
from cuepost.interfaces.wire_models.shapes import Moment, ResponseModel


class AuditEntry(ResponseModel, frozen=True):
    """Who did what, when, by which interface and from which address."""

    id: UUID
    action: Action
    actor: str
    actor_name: str | None
    interface: str
    address: str | None
    subject: str | None
    details: Mapping[str, str]
    at: Moment

    @classmethod
    def of(cls, entry: StoredEntry) -> "AuditEntry":
        return cls(
            id=entry.id,
            action=entry.action,
            actor=entry.actor,
            actor_name=entry.actor_name,
            interface=entry.interface,
            address=entry.address,
            subject=entry.subject,
            details=entry.details,
            at=to_text(entry.at),
        )


class AuditList(ResponseModel, frozen=True):
    data: list[AuditEntry]
    next_cursor: str | None
