"""Alerts of endpoints, and the e-mails that are still to be sent about them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cuepost.domain.alert import Alert, AlertKind, AlertMail


class Alerts(Protocol):
    async def open(self, alert: Alert) -> None:
        """Unless one of its kind is open for that endpoint."""
        ...

    async def end(
        self,
        account_id: UUID,
        webhook_id: UUID,
        kind: AlertKind,
        now: datetime,
        *,
        silently: bool = False,
    ) -> None:
        """The open alert of that kind, if there is one; `silently` it is not announced."""
        ...

    async def of_account(self, account_id: UUID) -> list[Alert]:
        """The open ones, oldest first."""
        ...

    async def perhaps_over(self, quiet_since: datetime, limit: int) -> list[Alert]:
        """Open alerts of failing endpoints that are disabled, or quiet since then."""
        ...

    async def backlogs(self, due_before: datetime, limit: int) -> list[Alert]:
        """New alerts of endpoints with a delivery that has been due since before then."""
        ...

    async def backlogs_over(self, due_before: datetime, limit: int) -> list[Alert]:
        """Open alerts of backlogs of which no delivery has been due since before then."""
        ...

    async def has_unannounced(self) -> bool: ...

    async def unannounced(self, limit: int) -> list[Alert]:
        """Alerts with a change that is to be announced; no other process announces them."""
        ...

    async def save_announced(self, alert: Alert) -> None: ...

    async def add_mails(self, mails: Sequence[AlertMail]) -> None: ...

    async def has_due_mails(self, now: datetime) -> bool: ...

    async def due_mails(self, now: datetime, limit: int) -> list[AlertMail]:
        """No other process sends them until the transaction ends."""
        ...

    async def postpone_mail(self, mail: AlertMail) -> None:
        """To its `due_at`, with its number of attempts."""
        ...

    async def drop_mail(self, mail: AlertMail) -> None: ...
