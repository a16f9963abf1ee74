"""Accounts, keys, projects, endpoints, reports, stored answers and the audit trail."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from cuepost.domain.access import Account, AccountState, ApiKey
from cuepost.domain.account_reference import search_key
from cuepost.domain.artifact import Artifact
from cuepost.domain.audit import Action, AuditEntry
from cuepost.domain.endpoint import Endpoint, StoredSecret
from cuepost.domain.errors import FieldError
from cuepost.domain.event import SilenceReason, Subscriber
from cuepost.domain.immutable import immutable
from cuepost.domain.project import Project


@dataclass(frozen=True, slots=True)
class Page:
    """The next `limit` rows before the id `before`, the newest first."""

    limit: int
    before: UUID | None = None


class SearchedBy(StrEnum):
    NAME = "name"
    EXTERNAL_ID = "external_id"


@dataclass(frozen=True, slots=True)
class AccountSearch:
    """What begins with `prefix`, in the order of what is searched by.

    `after` is that text of the last account of the page before, and the account's id. A prefix of a
    name is as `search_key` makes it.
    """

    by: SearchedBy
    prefix: str
    limit: int
    after: tuple[str, UUID] | None = None

    def place_of(self, account: Account) -> tuple[str, UUID]:
        """What the page behind this account begins after."""
        return searched_text(self.by, account), account.id


def searched_text(by: SearchedBy, account: Account) -> str:
    return search_key(account.name) if by is SearchedBy.NAME else account.external_id or ""


ProjectKey = tuple[UUID, UUID]
"""Account and project."""
ReportKey = tuple[UUID, str]
"""Account, and the id that the reporter gave."""


@immutable
class ReportAnswer:
    """The answer to a milestone report; `errors` say what is wrong with an invalid one."""

    report_id: str
    accepted: bool
    event_id: UUID | None
    notified: bool
    reason: SilenceReason | None
    errors: tuple[FieldError, ...] = ()


@immutable
class StoredReport:
    """An accepted report: its answer, and a digest of its content.

    Reports from before digests were kept have none.
    """

    answer: ReportAnswer
    digest: bytes | None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The fingerprint of a request that carried an Idempotency-Key, and its sealed answer."""

    fingerprint: bytes
    sealed_answer: bytes | None


class Accounts(Protocol):
    async def add(self, account: Account) -> None: ...
    async def get(self, account_id: UUID) -> Account | None: ...
    async def hold(self, account_id: UUID) -> Account | None:
        """Read the account; its access cannot change until the transaction ends."""
        ...

    async def lock(self, account_id: UUID) -> Account | None: ...
    async def oldest(self, limit: int) -> list[Account]: ...
    async def not_live(self, account_ids: Collection[UUID]) -> Mapping[UUID, AccountState]:
        """The accounts among these that are moving or have moved.

        The others stay live until the transaction ends.
        """
        ...

    async def set_access(self, account_id: UUID, enabled: bool) -> None: ...
    async def by_external_id(self, external_id: str) -> Account | None: ...
    async def page(self, page: Page) -> list[Account]: ...
    async def search(self, search: AccountSearch) -> list[Account]: ...
    async def save(self, account: Account) -> None:
        """Its name and its external id; nothing else."""
        ...

    async def lacks_search_names(self) -> bool:
        """Whether an account of an older version cannot be found by name yet."""
        ...

    async def name_for_search(self, limit: int) -> bool:
        """Let up to that many such accounts be found by name; True if there were any."""
        ...

    async def start_erasing(self, account_id: UUID, now: datetime) -> None: ...
    async def erasing(self, limit: int) -> list[UUID]:
        """Accounts that are being erased, the one that waits longest first."""
        ...

    async def erase_some(self, account_id: UUID, rows: int) -> bool:
        """Delete up to `rows` rows of each kind; return True once the account is gone."""
        ...


class Keys(Protocol):
    async def add(self, key: ApiKey) -> None: ...
    async def get(self, key_id: UUID) -> ApiKey | None: ...
    async def all(self, account_id: UUID | None) -> list[ApiKey]:
        """The keys of an account, or the operator's keys if the account is None."""
        ...

    async def page(self, account_id: UUID, page: Page) -> list[ApiKey]: ...
    async def page_of_all(self, page: Page) -> list[ApiKey]:
        """Of all accounts, and of none."""
        ...

    async def revoke(self, key_id: UUID, now: datetime) -> None: ...
    async def revoke_all(self, account_id: UUID, now: datetime) -> None:
        """Every key of the account."""
        ...

    async def touch(self, key_id: UUID, now: datetime) -> None: ...


class Projects(Protocol):
    async def add(self, project: Project) -> None: ...
    async def get(self, account_id: UUID, project_id: UUID) -> Project | None: ...
    async def page(self, account_id: UUID, page: Page) -> list[Project]:
        """Projects that were not deleted."""
        ...

    async def search(self, account_id: UUID, prefix: str, limit: int) -> list[Project]:
        """Those whose `search_key` begins with it, in its order, without deleted ones."""
        ...

    async def lacks_search_names(self) -> bool:
        """Whether `name_for_search` has something to do."""
        ...

    async def name_for_search(self, limit: int) -> bool:
        """Let some projects of an older version be found; False if there were none."""
        ...

    async def owners(self, project_ids: Sequence[UUID]) -> Mapping[UUID, UUID]:
        """The account of each project that exists."""
        ...

    async def lock(self, keys: Collection[ProjectKey]) -> dict[UUID, Project]:
        """Read the projects; no other transaction can change them until this one ends."""
        ...

    async def lock_any(
        self, project_ids: Collection[UUID], *, skip_locked: bool
    ) -> dict[UUID, Project]:
        """As `lock`, but by project id alone, because milestone reports do not name an account.

        With `skip_locked` the projects that another transaction has locked are left out.
        """
        ...

    async def save(self, projects: Sequence[Project]) -> None: ...
    async def save_status(self, projects: Sequence[Project]) -> None:
        """Save only status and stage, and the times of the change and of the export."""
        ...

    async def expired(self, now: datetime, limit: int) -> list[Project]:
        """Projects whose access has expired and was not processed yet; each is returned once."""
        ...

    async def artifacts(self, account_id: UUID, project_id: UUID) -> list[Artifact]: ...
    async def files_to_erase(self, account_id: UUID, limit: int) -> dict[UUID, list[str]]:
        """Keys of files by project, without those that projects of other accounts share."""
        ...

    async def replace_artifacts(self, artifacts: Mapping[ProjectKey, Sequence[Artifact]]) -> None:
        """Replace all artifacts of each project that is a key of `artifacts`."""
        ...


class Endpoints(Protocol):
    async def add(self, endpoint: Endpoint, secret: StoredSecret) -> None: ...
    async def get(self, account_id: UUID, webhook_id: UUID) -> Endpoint | None: ...
    async def lock(self, account_id: UUID, webhook_id: UUID) -> Endpoint | None: ...
    async def count(self, account_id: UUID) -> int: ...
    async def page(self, account_id: UUID, page: Page) -> list[Endpoint]: ...
    async def save(self, endpoint: Endpoint) -> None: ...
    async def delete(self, account_id: UUID, webhook_id: UUID, now: datetime) -> None:
        """Delete the endpoint and its secrets, and hide its deliveries, which are purged later."""
        ...

    async def purge_deleted(self, rows: int) -> bool:
        """Delete history of deleted endpoints; return False once nothing is left to delete."""
        ...

    async def subscribers(self, account_ids: Collection[UUID]) -> dict[UUID, list[Subscriber]]:
        """The endpoints for fan-out, by account; stopped ones are included.

        Until the transaction ends none of them can be disabled or deleted, nor the account closed.
        """
        ...

    async def secrets(
        self, account_id: UUID, webhook_ids: Sequence[UUID]
    ) -> dict[UUID, list[StoredSecret]]: ...
    async def put_secret(
        self, account_id: UUID, webhook_id: UUID, secret: StoredSecret
    ) -> None: ...
    async def drop_secret(self, account_id: UUID, webhook_id: UUID, version: int) -> None: ...


class Reports(Protocol):
    async def find(self, keys: Collection[ReportKey]) -> dict[ReportKey, StoredReport]: ...
    async def add(self, accepted: Mapping[ReportKey, StoredReport], now: datetime) -> None: ...


class Idempotency(Protocol):
    """Idempotency-Keys are separate for each API key."""

    async def claim(
        self, account_id: UUID, key_id: UUID, key: str, fingerprint: bytes, now: datetime
    ) -> StoredAnswer | None:
        """None if this transaction is the first to use the key, else what the first one stored."""
        ...

    async def remember(
        self, account_id: UUID, key_id: UUID, key: str, sealed_answer: bytes
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """`actor` is that of an entry, such as `user:<id>`, or what it begins with: `user`.

    None selects everything.
    """

    actions: frozenset[Action] | None = None
    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_selective(self) -> bool:
        """Whether more than the time is chosen, which the ids have."""
        return self.actions is not None or self.actor is not None


EVERY_ENTRY = AuditFilter()


class Audit(Protocol):
    async def add(self, entry: AuditEntry) -> None: ...
    async def page(
        self,
        account_id: UUID,
        page: Page,
        chosen: AuditFilter = EVERY_ENTRY,
        lowest: UUID | None = None,
    ) -> list[AuditEntry]:
        """From the id `lowest` on, if there is one."""
        ...

    async def last_of(self, account_id: UUID, page: Page, chosen: AuditFilter) -> UUID | None:
        """The id of the last entry of a page by time alone; None if the page is not full."""
        ...
