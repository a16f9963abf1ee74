"""The audit trail of an account."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from cuepost.application.search_audit import Trail
from cuepost.domain.audit import GROUPS, Action, actions_in
from cuepost.domain.audit import AuditEntry as StoredEntry
from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.instants import to_text
from cuepost.interfaces.wire_models.paging import PageQuery, cursor_of
from cuepost.interfaces.wire_models.shapes import (
    LINE,
    Moment,
    ResponseModel,
    Time,
    given,
    optional_instant,
)
from cuepost.ports.records import AuditFilter, Page

AuditChoice = Annotated[
    str,
    Meta(
        title="AuditChoice",
        description="An action, or all actions of a group such as `webhook`.",
        extra_json_schema={"enum": [*GROUPS, *Action]},
    ),
]
Actor = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=300,
        pattern=LINE,
        description="The `actor` of an entry, or a kind of actors: `user`, `key` or `operator`.",
        examples=["user", "key:0198c0de-5a3b-7d21-9c4e-000000000007"],
    ),
]


class AuditQuery(PageQuery, frozen=True):
    """Entries from `since` to before `until`."""

    action: AuditChoice | UnsetType = UNSET
    actor: Actor | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    until: Time | UnsetType = UNSET

    def chosen(self) -> AuditFilter:
        return AuditFilter(
            known_actions(given(self.action)),
            given(self.actor),
            optional_instant(self.since, "since"),
            optional_instant(self.until, "until"),
        )

    def page(self) -> Page:
        """The search itself detects whether there is a next page."""
        return replace(super().page(), limit=self.limit)


def known_actions(choice: str | None) -> frozenset[Action] | None:
    if choice is None:
        return None
    found = actions_in(choice)
    if not found:
        raise Invalid(
            FieldError("action", "unknown_action", f"Use an action or one of {', '.join(GROUPS)}.")
        )
    return found


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
    """With a filter, a page can have fewer entries than `limit`, or none, before the last page."""

    data: list[AuditEntry]
    next_cursor: str | None

    @classmethod
    def of(cls, trail: Trail) -> "AuditList":
        further = trail.further
        return cls(
            [AuditEntry.of(each) for each in trail.entries],
            None if further is None else cursor_of(further),
        )
