"""The state of the service over all accounts, for the person on call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from cuepost.application.delivery_figures import DeliveryFigures, Figures, Range
from cuepost.application.manage_accounts import ManageAccounts
from cuepost.application.perform import OPERATOR
from cuepost.application.search_audit import Trail, search_audit
from cuepost.domain.access import Account, ApiKey, Caller, Scope
from cuepost.domain.audit import Action
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.delivery_counts import FINE_MINUTES, interval_of
from cuepost.domain.health import RECENT, Health, HealthState, health
from cuepost.domain.instants import from_millis, to_millis
from cuepost.domain.person import User
from cuepost.ports.records import EVERY_ENTRY, Page
from cuepost.ports.service_state import (
    CountedIntervals,
    EndpointLine,
    OldestDue,
    StoreState,
    WorkerState,
)
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock
from cuepost.ports.telemetry import Waiting

DAY = timedelta(days=1)
# The interval before the current one begins within it.
RATED = timedelta(minutes=2 * FINE_MINUTES)
BEHIND_AFTER = timedelta(minutes=1)
"""A delivery that has been due for this long should have been sent."""
MOST_WORKERS = 100
MOST_CLOSED = 1_000
MOST_ERASING = 20
FAILING_EXAMINED = 200
FAILING_SHOWN = 20
MOST_ENDPOINTS = 2_000
MOST_KEYS = MOST_MEMBERS = 50
# The worst first.
_WORST = (
    HealthState.FAILING,
    HealthState.DEGRADED,
    HealthState.HEALTHY,
    HealthState.UNKNOWN,
    HealthState.DISABLED,
)


class Verdict(StrEnum):
    """Whether the service sends what is due."""

    DELIVERING = "delivering"
    BEHIND = "behind"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Backlog:
    """`due` could be sent now; `oldest` has waited for longest."""

    waiting: Mapping[DeliveryStatus, Waiting]
    due: int
    oldest: OldestDue | None


@dataclass(frozen=True, slots=True)
class EndpointState:
    line: EndpointLine
    health: Health


@dataclass(frozen=True, slots=True)
class Overview:
    verdict: Verdict
    backlog: Backlog
    workers: Sequence[WorkerState]
    store: StoreState
    closed: Sequence[Account]
    erasing: Sequence[UUID]
    failing: Sequence[EndpointState]


@dataclass(frozen=True, slots=True)
class Rate:
    """Deliveries that began in the last interval that is over; if they are too many, at least."""

    per_minute: float
    is_least: bool


@dataclass(frozen=True, slots=True)
class ServiceFigures:
    """With `is_cut`, only intervals since `counted_since` were counted, because there are many."""

    figures: Figures
    is_cut: bool
    counted_since: datetime
    rate: Rate


@dataclass(frozen=True, slots=True)
class AccountState:
    """`worst` is the health of the endpoint that does worst, None without endpoints."""

    account: Account
    endpoints: Sequence[EndpointState]

    @property
    def worst(self) -> HealthState | None:
        states = {each.health.state for each in self.endpoints}
        return next((state for state in _WORST if state in states), None)

    @property
    def delivered(self) -> int:
        return sum(each.line.delivered for each in self.endpoints)

    @property
    def failed(self) -> int:
        return sum(each.line.failed for each in self.endpoints)


@dataclass(frozen=True, slots=True)
class AccountDetails:
    """The newest keys and members, one more than are shown."""

    state: AccountState
    keys: Sequence[ApiKey]
    members: Sequence[User]


@dataclass(frozen=True, slots=True)
class WatchService:
    clock: Clock
    accounts: ManageAccounts
    account_figures: DeliveryFigures

    async def overview(self, transaction: Transaction, caller: Caller) -> Overview:
        caller.require(Scope.ACCOUNTS_READ)
        now, state = self.clock.now(), transaction.service_state
        backlog = Backlog(
            await transaction.backlog.waiting(now), await state.due(now), await state.oldest_due()
        )
        workers = await state.workers(MOST_WORKERS)
        failing = await state.failing(FAILING_EXAMINED, now - RECENT, now - DAY)
        worst_first = sorted(failing, key=lambda line: line.failed, reverse=True)
        return Overview(
            verdict=_verdict(workers, backlog.oldest, now),
            backlog=backlog,
            workers=workers,
            store=await state.store(),
            closed=await state.closed_accounts(MOST_CLOSED),
            erasing=await transaction.accounts.erasing(MOST_ERASING),
            failing=[_with_health(line) for line in worst_first[:FAILING_SHOWN]],
        )

    def _rate(self, found: CountedIntervals) -> Rate:
        this = from_millis(interval_of(to_millis(self.clock.now()), FINE_MINUTES))
        before = this - timedelta(minutes=FINE_MINUTES)
        total = sum(each.counts.total for each in found.intervals if each.since == before)
        is_least = found.is_cut and found.intervals[0].since >= before
        return Rate(total / FINE_MINUTES, is_least)

    async def figures(
        self, transaction: Transaction, caller: Caller, span: Range
    ) -> ServiceFigures:
        """Of all accounts together."""
        caller.require(Scope.ACCOUNTS_READ)
        state, since = transaction.service_state, self.account_figures.since(span)
        found = recent = await state.counts(span.counted_minutes, since)
        if span is not Range.HOUR:
            recent = await state.counts(FINE_MINUTES, self.clock.now() - RATED)
        first = found.whole[0].since if found.is_cut else since
        figures = span.figures(found.whole, since)
        return ServiceFigures(figures, found.is_cut, first, self._rate(recent))

    async def states(
        self, transaction: Transaction, caller: Caller, accounts: Sequence[Account]
    ) -> list[AccountState]:
        """Of the accounts of a page."""
        caller.require(Scope.ACCOUNTS_READ)
        now = self.clock.now()
        lines = await transaction.service_state.endpoints_of(
            [each.id for each in accounts], MOST_ENDPOINTS, now - RECENT, now - DAY
        )
        found: dict[UUID, list[EndpointState]] = {each.id: [] for each in accounts}
        for line in lines:
            found[line.endpoint.account_id].append(_with_health(line))
        return [AccountState(each, found[each.id]) for each in accounts]

    async def account(
        self, transaction: Transaction, caller: Caller, account_id: UUID
    ) -> AccountDetails:
        account = await self.accounts.get(transaction, caller, account_id)
        [state] = await self.states(transaction, caller, [account])
        return AccountDetails(
            state,
            await self.accounts.keys(transaction, caller, account_id, Page(MOST_KEYS + 1)),
            await transaction.users.page(account_id, Page(MOST_MEMBERS + 1)),
        )

    async def figures_of(
        self, transaction: Transaction, caller: Caller, account_id: UUID, span: Range
    ) -> Figures:
        caller.require(Scope.ACCOUNTS_READ)
        since = self.account_figures.since(span)
        found = await transaction.counts.of_account(account_id, span.bars_from(since))
        return span.figures(found, since)

    async def audit(
        self, transaction: Transaction, caller: Caller, account_id: UUID | None, page: Page
    ) -> Trail:
        """The trail of an account, or the operator's own."""
        caller.require(Scope.ACCOUNTS_READ)
        if account_id is not None:
            await self.accounts.get(transaction, caller, account_id)
        return await search_audit(transaction, account_id or OPERATOR, EVERY_ENTRY, page)

    async def set_access(
        self, transaction: Transaction, caller: Caller, account_id: UUID, *, enabled: bool
    ) -> Account:
        """In the trail of the account, and in the operator's."""
        account = await self.accounts.set_webhooks(transaction, caller, account_id, enabled)
        action = Action.ACCESS_OPENED if enabled else Action.ACCESS_CLOSED
        await self.accounts.access.audit.note(
            transaction, caller, action, OPERATOR, account_id, name=account.name
        )
        return account


def _verdict(workers: Sequence[WorkerState], oldest: OldestDue | None, now: datetime) -> Verdict:
    if not any(each.alive_until > now for each in workers):
        return Verdict.STOPPED
    is_behind = oldest is not None and oldest.due_at + BEHIND_AFTER <= now
    return Verdict.BEHIND if is_behind else Verdict.DELIVERING


def _with_health(line: EndpointLine) -> EndpointState:
    return EndpointState(line, health(line.endpoint, line.retrying, line.recent_failed))
