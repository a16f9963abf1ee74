"""Bulk retries and their progress."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from cuepost.domain.bulk_retry import BulkRetry as RetryJob
from cuepost.domain.bulk_retry import BulkRetryState
from cuepost.domain.delivery import FINAL, DeliveryStatus
from cuepost.domain.instants import to_text
from cuepost.interfaces.wire_models.deliveries import IncludeDelivered
from cuepost.interfaces.wire_models.shapes import Moment, Request, ResponseModel, Time, moment

EndedStatuses = Annotated[
    list[DeliveryStatus],
    Meta(
        max_length=len(FINAL),
        description="Statuses of the deliveries to retry; default: failed and cancelled.",
        extra_json_schema={"items": {"enum": [status.value for status in FINAL]}},
    ),
]


class StartBulkRetry(Request, frozen=True):
    """Deliveries created at `since` or later and before `until` (now, if absent)."""

    since: Time
    until: Time | UnsetType | None = UNSET
    statuses: EndedStatuses | UnsetType | None = UNSET
    include_delivered: IncludeDelivered | UnsetType | None = UNSET
    dry_run: Annotated[bool, Meta(description="Only count the deliveries.")] | UnsetType | None = (
        UNSET
    )


class BulkRetry(ResponseModel, frozen=True):
    """`count` deliveries were found; `retried` and `skipped` are the progress."""

    id: Annotated[UUID | None, Meta(description="null for a dry run.")]
    status: BulkRetryState
    count: int
    retried: int
    skipped: int
    since: Moment
    until: Moment
    statuses: list[DeliveryStatus]
    include_delivered: IncludeDelivered
    created_at: Moment
    finished_at: Moment | None
    dry_run: bool

    @classmethod
    def of(cls, job: RetryJob, *, dry_run: bool = False) -> "BulkRetry":
        """A dry run is finished at once."""
        ended = job.created_at if dry_run else job.finished_at
        return cls(
            id=None if dry_run else job.id,
            status=BulkRetryState.FINISHED if dry_run else job.state,
            count=job.count,
            retried=job.retried,
            skipped=job.skipped,
            since=to_text(job.since),
            until=to_text(job.until),
            statuses=list(job.statuses),
            include_delivered=job.include_delivered,
            created_at=to_text(job.created_at),
            finished_at=moment(ended),
            dry_run=dry_run,
        )
