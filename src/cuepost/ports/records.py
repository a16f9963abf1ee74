"""The records that people own: accounts, keys, projects, endpoints, and what guards them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cuepost.domain.access import Account, AccountState, ApiKey
from cuepost.domain.artifact import Artifact
from cuepost.domain.audit import AuditEntry
from cuepost.domain.endpoint import Endpoint, StoredSecret
from cuepost.domain.errors import FieldError
from cuepost.domain.event import SilenceReason
from cuepost.domain.fanout import Subscriber
from cuepost.domain.immutable import immutable
from cuepost.domain.project import Project


@dataclass(frozen=True, slots=True)
class Page:
    """Newest first: the next `limit` rows behind the id `before`."""

    limit: int
    before: UUID | None = None


ProjectKey = tuple[UUID, UUID]
"""Account and project."""
ReportKey = tuple[UUID, str]
"""Account, and the id that the reporter gave."""


@immutable
class ReportAnswer:
    """What is answered to a milestone report; `errors` say what is wrong with an invalid one."""

    report_id: str
    accepted: bool
    event_id: UUID | None
    notified: bool
    reason: SilenceReason | None
    errors: tuple[FieldError, ...] = ()


@immutable
class KeptReport:
    """An accepted report: its answer, and a digest of its content.

    Reports from before digests were kept have none.
    """

    answer: ReportAnswer
    digest: bytes | None


@dataclass(frozen=True, slots=True)
class RememberedAnswer:
    """The fingerprint of a request that carried an Idempotency-Key, and its sealed answer."""

    fingerprint: bytes
    sealed_answer: bytes | None


class Accounts(Protocol):
    async def add(self, account: Account) -> None: ...
    async def get(self, account_id: UUID) -> Account | None: ...
    async def hold(self, account_id: UUID) -> Account | None:
        """Read it; until the transaction ends its access is neither opened nor closed."""
        ...

    async def lock(self, account_id: UUID) -> Account | None: ...
    async def all(self) -> list[Account]: ...
    async def not_live(self, account_ids: Collection[UUID]) -> Mapping[UUID, AccountState]:
        """Those of them that are moving or have moved.

        The others stay live until the transaction ends.
        """
        ...

    async def set_access(self, account_id: UUID, enabled: bool) -> None: ...
    async def erase_some(self, account_id: UUID, rows: int) -> bool:
        """Remove up to that many rows of each kind; True once nothing of the account is left."""
        ...


class Keys(Protocol):
    async def add(self, key: ApiKey) -> None: ...
    async def get(self, key_id: UUID) -> ApiKey | None: ...
    async def all(self, account_id: UUID | None) -> list[ApiKey]:
        """The keys of an account; of the operator where the account is None."""
        ...

    async def revoke(self, key_id: UUID, now: datetime) -> None: ...
    async def touch(self, key_id: UUID, now: datetime) -> None: ...


class Projects(Protocol):
    async def add(self, project: Project) -> None: ...
    async def get(self, account_id: UUID, project_id: UUID) -> Project | None: ...
    async def page(self, account_id: UUID, page: Page) -> list[Project]:
        """Projects that were not deleted."""
        ...

    async def owners(self, project_ids: Sequence[UUID]) -> Mapping[UUID, UUID]:
        """The account of each project that exists."""
        ...

    async def lock(self, keys: Collection[ProjectKey]) -> dict[UUID, Project]:
        """Read them for a change; until the transaction ends nobody else changes them."""
        ...

    async def lock_any(
        self, project_ids: Collection[UUID], *, skip_locked: bool
    ) -> dict[UUID, Project]:
        """As `lock`, by their ids alone: whoever reports a milestone names no account.

        With `skip_locked` those that another transaction has locked are left out.
        """
        ...

    async def save(self, projects: Sequence[Project]) -> None: ...
    async def save_moves(self, projects: Sequence[Project]) -> None:
        """Their status and stage, when that was and when they were exported; nothing else."""
        ...

    async def expired(self, now: datetime, limit: int) -> list[Project]:
        """Projects whose access window has ended and was not dealt with yet, each of them once."""
        ...

    async def artifacts(self, account_id: UUID, project_id: UUID) -> list[Artifact]: ...
    async def files_to_erase(self, account_id: UUID, limit: int) -> dict[UUID, list[str]]:
        """Keys of files, by project; without those that another account's projects have too."""
        ...

    async def replace_artifacts(self, artifacts: Mapping[ProjectKey, Sequence[Artifact]]) -> None:
        """Each project that is named has these files from now on, and no others."""
        ...


class Endpoints(Protocol):
    async def add(self, endpoint: Endpoint, secret: StoredSecret) -> None: ...
    async def get(self, account_id: UUID, webhook_id: UUID) -> Endpoint | None: ...
    async def lock(self, account_id: UUID, webhook_id: UUID) -> Endpoint | None: ...
    async def count(self, account_id: UUID) -> int: ...
    async def page(self, account_id: UUID, page: Page) -> list[Endpoint]: ...
    async def save(self, endpoint: Endpoint) -> None: ...
    async def delete(self, account_id: UUID, webhook_id: UUID, now: datetime) -> None:
        """The endpoint, its secrets and its deliveries are gone for everybody at once."""
        ...

    async def purge_deleted(self, rows: int) -> bool:
        """Clear away history of deleted endpoints; False once there is nothing more to clear."""
        ...

    async def subscribers(self, account_ids: Collection[UUID]) -> dict[UUID, list[Subscriber]]:
        """For fan-out, of each account that has any, stopped ones included.

        Nobody can disable or delete one of them, or close the account, until the transaction ends.
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
    async def find(self, keys: Collection[ReportKey]) -> dict[ReportKey, KeptReport]: ...
    async def add(self, accepted: Mapping[ReportKey, KeptReport], now: datetime) -> None: ...


class Idempotency(Protocol):
    """Whoever uses another API key of the account uses other Idempotency-Keys."""

    async def claim(
        self, account_id: UUID, key_id: UUID, key: str, fingerprint: bytes, now: datetime
    ) -> RememberedAnswer | None:
        """None: the key is this transaction's. Else what the first request with it left behind."""
        ...

    async def remember(
        self, account_id: UUID, key_id: UUID, key: str, sealed_answer: bytes
    ) -> None: ...


class Audit(Protocol):
    async def add(self, entry: AuditEntry) -> None: ...
    async def page(self, account_id: UUID, page: Page) -> list[AuditEntry]: ...
