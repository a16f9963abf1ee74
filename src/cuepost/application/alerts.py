"""Alerts about endpoints: shown to an account, announced once for each change, and sent by e-mail.

An alert of a failing endpoint is opened with the result that made it fail, in its transaction. The
rest is done by maintenance jobs, in steps that any process may do: an announcement writes the event
for other endpoints and the e-mails that are to be sent in one transaction.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from cuepost.application.perform import Perform
from cuepost.domain.access import Caller, Scope
from cuepost.domain.alert import (
    BACKLOG_FROM,
    BACKLOG_UNTIL,
    Alert,
    AlertMail,
    event_of,
)
from cuepost.domain.event import Event, deliveries_of, event_body
from cuepost.domain.event_catalog import endpoint_data
from cuepost.domain.health import QUIET, Condition
from cuepost.domain.person import User
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, IdSource

AT_ONCE = 50
MOST_PEOPLE = 1_000

Work = Callable[[Transaction, Alert], Awaitable[None]]
log = logging.getLogger("cuepost.alerts")


@dataclass(frozen=True, slots=True)
class ShowAlerts:
    async def open(self, transaction: Transaction, caller: Caller) -> list[Alert]:
        """Those that are not over, oldest first."""
        return await transaction.alerts.of_account(caller.require_webhooks(Scope.WEBHOOKS_READ))

    async def choose(self, transaction: Transaction, user: User, *, wanted: bool) -> None:
        """Whether the person who is signed in gets alerts by e-mail."""
        await transaction.users.set_alerts(user.account_id, user.id, wanted)


@dataclass(frozen=True, slots=True)
class FollowAlerts:
    """Each step answers whether there may be more to do at once."""

    perform: Perform
    clock: Clock
    ids: IdSource

    async def end_recovered(self) -> bool:
        """Alerts of endpoints that have recovered, or were disabled."""
        quiet_since = self.clock.now() - QUIET
        found = await self.perform.read(lambda t: t.alerts.perhaps_over(quiet_since, AT_ONCE))
        return await self._each(found, self._end_recovered)

    async def _end_recovered(self, transaction: Transaction, alert: Alert) -> None:
        endpoint = await transaction.endpoints.lock(alert.account_id, alert.webhook_id)
        if endpoint is None:
            return
        now = self.clock.now()
        if not endpoint.enabled or Condition.of(endpoint).has_recovered(now):
            await transaction.endpoints.save(replace(endpoint, failing_since=None))
            await transaction.alerts.end(
                alert.account_id, alert.webhook_id, alert.kind, now, silently=not endpoint.enabled
            )

    async def watch_backlogs(self) -> bool:
        """Opens alerts of backlogs, and ends those that are over."""
        now = self.clock.now()
        grown = await self.perform.read(lambda t: t.alerts.backlogs(now - BACKLOG_FROM, AT_ONCE))
        await self._each(grown, lambda transaction, alert: transaction.alerts.open(alert))
        over = await self.perform.read(
            lambda t: t.alerts.backlogs_over(now - BACKLOG_UNTIL, AT_ONCE)
        )
        await self._each(over, self._end_backlog)
        return len(grown) == AT_ONCE or len(over) == AT_ONCE

    async def _end_backlog(self, transaction: Transaction, alert: Alert) -> None:
        await transaction.alerts.end(
            alert.account_id, alert.webhook_id, alert.kind, self.clock.now()
        )

    async def _each(self, alerts: list[Alert], work: Work) -> bool:
        for alert in alerts:
            await self.perform.change(partial(_applied, work, alert))
        return len(alerts) == AT_ONCE

    async def announce(self, *, by_email: bool) -> bool:
        if not await self.perform.read(lambda t: t.alerts.has_unannounced()):
            return False
        return await self.perform.change(lambda t: self._announce(t, by_email=by_email))

    async def _announce(self, transaction: Transaction, *, by_email: bool) -> bool:
        found = await transaction.alerts.unannounced(AT_ONCE)
        for alert in found:
            endpoint = await transaction.endpoints.get(alert.account_id, alert.webhook_id)
            announced = replace(alert, announced=alert.next_change)
            await transaction.alerts.save_announced(announced)
            if endpoint is not None:
                await self._publish(transaction, alert)
                if by_email:
                    await self._address(transaction, alert)
                log.info(
                    "event=alert webhook=%s kind=%s change=%d",
                    alert.webhook_id,
                    alert.kind,
                    alert.next_change,
                )
        return bool(found)

    async def _publish(self, transaction: Transaction, alert: Alert) -> None:
        """An event for those of the account's other endpoints that are subscribed."""
        event_type = event_of(alert, alert.next_change)
        if event_type is None:
            return
        subscribed = await transaction.endpoints.subscribers([alert.account_id])
        others = [
            each
            for each in subscribed.get(alert.account_id, ())
            if each.webhook_id != alert.webhook_id and event_type in each.events
        ]
        if not others:
            return
        now = self.clock.now()
        event_id = self.ids(now)
        data = endpoint_data(alert.webhook_id, alert.since, alert.finished_at)
        event = Event(
            account_id=alert.account_id,
            id=event_id,
            type=event_type,
            created_at=now,
            project_id=None,
            occurred_at=alert.since,
            body=event_body(event_id, event_type, now, data),
        )
        await transaction.events.add([event])
        await transaction.deliveries.add(deliveries_of(event, others, self.ids))

    async def _address(self, transaction: Transaction, alert: Alert) -> None:
        now = self.clock.now()
        people = await transaction.users.page(alert.account_id, Page(MOST_PEOPLE))
        await transaction.alerts.add_mails(
            [
                AlertMail(
                    alert.account_id,
                    alert.webhook_id,
                    alert.kind,
                    alert.since,
                    alert.next_change,
                    each.id,
                    now,
                )
                for each in people
                if each.email is not None and each.wants_alerts
            ]
        )


async def _applied(work: Work, alert: Alert, transaction: Transaction) -> None:
    await work(transaction, alert)
