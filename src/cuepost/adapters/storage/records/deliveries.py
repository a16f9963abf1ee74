"""Live deliveries, and the history of ended ones."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.records import delivery_pages as sql
from cuepost.adapters.storage.records import delivery_rows as rows
from cuepost.adapters.storage.records import stops
from cuepost.adapters.storage.records.counts import Tally
from cuepost.adapters.storage.records.endpoints import load_targets
from cuepost.adapters.storage.session import (
    AccountNumbers,
    Records,
    account_numbers,
    endpoint_numbers,
    numbers_of,
)
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus, Trigger
from cuepost.domain.instants import instant_of
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page

_REOPEN = Sql(
    f"""
    DELETE FROM deliveries WHERE account = :account AND id IN :ids
    RETURNING {", ".join((*rows.Ended._fields, *rows.ATTEMPT_COLUMNS))}
    """
)


class DeliveryRecords(Records):
    async def add(self, made: Sequence[Delivery]) -> None:
        accounts = await account_numbers(self._session, [each.account_id for each in made])
        endpoints = await endpoint_numbers(
            self._session, ((each.account_id, each.webhook_id) for each in made)
        )
        live, ended = [], []
        for each in made:
            account, endpoint = accounts[each.account_id], endpoints[each.webhook_id]
            if each.finished_at is None:
                holder = self._session.numbers.accepting.get(endpoint)
                worker = self._session.outbox.lease(each, account, endpoint, holder)
                live.append(rows.live_row(each, account, endpoint, worker))
            else:
                ended.append(rows.ended_row(each, account, endpoint))
        await self._session.write(rows.ADD_LIVE, live)
        if ended:
            await stops.add_ended(self._session, ended)
        reserved = self._session.outbox.reserved
        if reserved:
            lanes = {each.lane for each in reserved}
            now = reserved[0].delivery.created_at
            self._session.outbox.assign(await load_targets(self._session, lanes, now))

    async def get(self, account_id: UUID, delivery_id: UUID) -> Delivery | None:
        return await self._one((sql.ONE_LIVE, sql.ONE_ENDED), account_id, delivery_id)

    async def lock(self, account_id: UUID, delivery_id: UUID) -> Delivery | None:
        return await self._one((sql.LOCKED_LIVE, sql.LOCKED_ENDED), account_id, delivery_id)

    async def page(self, account_id: UUID, chosen: DeliveryFilter, page: Page) -> list[Delivery]:
        numbers = await numbers_of(self._session, account_id)
        if chosen.project_id is not None and chosen.event_id is None:
            return await self._page_of_project(account_id, numbers, chosen, page)
        session, live, ended = self._session.offloaded, list[rows.Live](), list[rows.Ended]()
        # Live ones first, so that a delivery that ends in between is read twice and not missed.
        for statement, values in sql.live_pages(numbers, chosen, page):
            live += map(rows.Live._make, await session.fetch(statement, **values))
        for statement, values in sql.ended_pages(numbers, chosen, page):
            ended += map(rows.Ended._make, await session.fetch(statement, **values))
        found = rows.newest_first(live, ended, page.limit)
        return [row.delivery(account_id, numbers.webhook_of) for row in found]

    async def of_events(
        self, account_id: UUID, event_ids: Sequence[UUID]
    ) -> dict[UUID, list[Delivery]]:
        found: dict[UUID, list[Delivery]] = defaultdict(list)
        if event_ids:
            numbers = await numbers_of(self._session, account_id)
            for row in reversed(await self._of_events(numbers, event_ids)):
                found[row.event_id].append(row.delivery(account_id, numbers.webhook_of))
        return found

    async def retrying(self, account_id: UUID, webhook_ids: Sequence[UUID]) -> dict[UUID, int]:
        if not webhook_ids:
            return {}
        numbers = await numbers_of(self._session, account_id)
        found = await self._session.offloaded.fetch(
            sql.RETRYING,
            account=numbers.account,
            endpoints=[numbers.endpoint(each) for each in webhook_ids],
        )
        return {numbers.webhook_of[endpoint]: count for endpoint, count in found}

    async def stop_endpoint(
        self, account_id: UUID, webhook_id: UUID | None, reason: CancelReason, now: datetime
    ) -> None:
        numbers = await numbers_of(self._session, account_id)
        chosen: dict[str, Any] = {"account": numbers.account}
        which = stops.OF_ACCOUNT
        if webhook_id is not None:
            which, chosen["endpoint"] = stops.OF_ENDPOINT, numbers.endpoint(webhook_id)
        await stops.stop(self._session, which, reason, now, **chosen)

    async def stop_project(
        self, account_id: UUID, project_id: UUID, reason: CancelReason, now: datetime
    ) -> None:
        if reason is CancelReason.PROJECT_ACCESS_EXPIRED and not await stops.access_ended(
            self._session, account_id, project_id, now
        ):
            return
        numbers = await numbers_of(self._session, account_id)
        await stops.stop_project(self._session, numbers.account, project_id, reason, now)

    async def send_again(
        self, account_id: UUID, delivery_ids: Sequence[UUID], now: datetime
    ) -> int:
        numbers = await numbers_of(self._session, account_id)
        account, made, live, tally = numbers.account, [], [], Tally()
        for row in await self._session.fetch(_REOPEN, account=account, ids=delivery_ids):
            own = len(rows.Ended._fields)
            ended, attempt = rows.Ended._make(row[:own]), row[own:]
            number, *_ = attempt
            if number is not None:
                made.append(rows.attempt_of_reopened(account, ended, attempt))
            live.append(_reopened(ended, account, now))
            tally.ended(account, ended.endpoint, ended.id, ended.status, ended.attempt_count, by=-1)
            self._session.outbox.wait(ended.endpoint)
        await self._session.insert("attempts", made)
        await self._session.insert("queue", live)
        await tally.write(self._session)
        return len(live)

    async def _one(
        self, statements: tuple[Sql, Sql], account_id: UUID, delivery_id: UUID
    ) -> Delivery | None:
        numbers = await numbers_of(self._session, account_id)
        key = {"account": numbers.account, "delivery": delivery_id}
        found: rows.Live | rows.Ended | None = None
        find_live, find_ended = statements
        # Twice, because an ended delivery may become live again between the two reads.
        for _ in range(2):
            if live := await self._session.fetch(find_live, **key):
                found = rows.Live._make(live[0])
            elif ended := await self._session.fetch(find_ended, **key):
                found = rows.Ended._make(ended[0])
            if found is not None:
                break
        if found is None or found.endpoint in numbers.deleted:
            return None
        return found.delivery(account_id, numbers.webhook_of)

    async def _page_of_project(
        self, account_id: UUID, numbers: AccountNumbers, chosen: DeliveryFilter, page: Page
    ) -> list[Delivery]:
        """Through its events: some at a time, always all events of a millisecond."""
        lowest, end = sql.bounds_of(chosen, page)
        # Deliveries in the same millisecond may belong to events with higher ids.
        end, found = sql.end_of(end), list[Delivery]()
        most, is_last = page.limit + 1, False
        while not is_last and len(found) < page.limit:
            some = await self._session.fetch(
                sql.EVENTS_OF_PROJECT,
                account=numbers.account,
                project=chosen.project_id,
                lowest=sql.lowest_of(lowest),
                end=end,
                most=most,
            )
            event_ids = [event_id for (event_id,) in some]
            is_last = len(event_ids) < most
            if not is_last:
                begin = sql.end_of(event_ids[-1])
                event_ids = [each for each in event_ids if each >= begin]
                end = begin
                most *= 2
            for row in await self._of_events(numbers, event_ids):
                made = row.delivery(account_id, numbers.webhook_of)
                found += [made] if _is_on(made, chosen, page) else []
        return found[: page.limit]

    async def _of_events(
        self, numbers: AccountNumbers, event_ids: Sequence[UUID]
    ) -> list[rows.Live | rows.Ended]:
        """Newest first."""
        if not event_ids:
            return []
        session = self._session.offloaded
        chosen = sql.of_events(numbers.account, event_ids)
        live = await session.fetch(sql.LIVE_OF_EVENTS, **chosen)
        ended = await session.fetch(sql.ENDED_OF_EVENTS, **chosen)
        found = rows.newest_first(
            list(map(rows.Live._make, live)), list(map(rows.Ended._make, ended))
        )
        return [row for row in found if row.endpoint not in numbers.deleted]


def _is_on(delivery: Delivery, chosen: DeliveryFilter, page: Page) -> bool:
    """Whether the filter and the position of the page include it."""
    made_at = instant_of(delivery.id)
    failed_first_time = chosen.include_delivered or delivery.delivered_at is None
    is_failed = chosen.status is DeliveryStatus.FAILED
    return (
        (page.before is None or delivery.id < page.before)
        and (chosen.project_id is None or delivery.project_id == chosen.project_id)
        and (chosen.webhook_id is None or delivery.webhook_id == chosen.webhook_id)
        and (chosen.event_type is None or delivery.event_type == chosen.event_type)
        and (chosen.status is None or delivery.status is chosen.status)
        and (not is_failed or failed_first_time)
        and (chosen.since is None or made_at >= chosen.since)
        and (chosen.until is None or made_at < chosen.until)
    )


def _reopened(ended: rows.Ended, account: int, now: datetime) -> dict[str, Any]:
    """Starts a new budget, and keeps the time of the first acknowledgement."""
    was_delivered = ended.status is DeliveryStatus.DELIVERED
    return {
        "account": account,
        "id": ended.id,
        "endpoint": ended.endpoint,
        "event_id": ended.event_id,
        "event_type": ended.event_type,
        "project_id": ended.project_id,
        "trigger": Trigger.MANUAL,
        "status": DeliveryStatus.PENDING,
        "attempt_count": ended.attempt_count,
        "budget": ended.budget + 1,
        "delivered_at": ended.delivered_at or (ended.finished_at if was_delivered else None),
        "due_at": now,
        "attempts_made": 0,
    }
