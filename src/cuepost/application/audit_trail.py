"""Adds audit entries, in the transaction of the change that they describe."""

from dataclasses import dataclass
from uuid import UUID

from cuepost.domain.access import Caller
from cuepost.domain.audit import Action, AuditEntry
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, IdSource


@dataclass(frozen=True, slots=True)
class AuditTrail:
    clock: Clock
    ids: IdSource

    async def note(
        self,
        transaction: Transaction,
        caller: Caller,
        action: Action,
        account_id: UUID,
        subject: UUID | None = None,
        **details: str,
    ) -> None:
        now = self.clock.now()
        await transaction.audit.add(
            AuditEntry(
                account_id=account_id,
                id=self.ids(now),
                action=action,
                actor=caller.actor,
                interface=caller.interface,
                address=caller.address,
                subject=str(subject) if subject else None,
                details=details,
                at=now,
                actor_name=caller.name,
            )
        )
