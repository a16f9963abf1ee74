"""A bulk retry starts with nothing done, at the beginning."""

from cuepost.domain.bulk_retry import BulkRetry, BulkRetryState
from cuepost.domain.delivery import DeliveryStatus
from cuepost.testing import START, SequentialIds


def test_a_new_bulk_retry_has_looked_at_nothing_yet() -> None:
    ids = SequentialIds()
    job = BulkRetry(
        account_id=ids(START),
        id=ids(START),
        webhook_id=ids(START),
        since=START,
        until=START,
        statuses=(DeliveryStatus.FAILED,),
        state=BulkRetryState.RUNNING,
        count=3,
        created_at=START,
    )
    assert (job.retried, job.skipped, job.position, job.finished_at) == (0, 0, None, None)


def test_a_bulk_retry_runs_finishes_or_is_cancelled() -> None:
    assert set(BulkRetryState) == {"running", "finished", "cancelled"}
