"""Reports and idempotency keys."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.adapters.storage.records.guards import IDEMPOTENCY_LIFE
from cuepost.domain.event import SilenceReason
from cuepost.ports.records import ReportKey, StoredAnswer, StoredReport
from cuepost.ports.store import Contention
from tests.support.records import Records
from tests.support.store_rows import AnyStore, introduce

OWNER, API_KEY, ANOTHER_API_KEY = UUID(int=7), UUID(int=8), UUID(int=9)
FROM_BEFORE = UUID(int=0)
MILLISECOND = timedelta(milliseconds=1)


def keyed(account_id: UUID, *reports: StoredReport) -> dict[ReportKey, StoredReport]:
    return {(account_id, each.answer.report_id): each for each in reports}


async def test_the_answer_to_a_report_and_its_digest_come_back(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()
    reports = [
        records.report(),
        records.report(digest=None),
        records.report(report_id='"quoted" \\ [1, 2] 🎬 é'),
        records.report(event_id=None, notified=False, reason=SilenceReason.PROJECT_DELETED),
    ]
    reports += [records.report(notified=False, reason=reason) for reason in SilenceReason]
    async with store.transaction() as transaction:
        await introduce(transaction, account_id)
        await transaction.reports.add(keyed(account_id, *reports), records.clock.now())
        await transaction.reports.add({}, records.clock.now())

    async with store.snapshot() as transaction:
        foreign = records.id(), reports[0].answer.report_id
        unknown = account_id, "unknown"
        known = keyed(account_id, *reports)
        assert await transaction.reports.find([*known, unknown, foreign]) == known
        assert await transaction.reports.find([unknown]) == {}
        assert await transaction.reports.find([]) == {}


async def test_hundreds_of_reports_are_found_at_once(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    reports = [records.report() for _ in range(537)]
    async with store.transaction() as transaction:
        await introduce(transaction, account_id)
        known = keyed(account_id, *reports)
        await transaction.reports.add(known, records.clock.now())
        found = await transaction.reports.find(list(known))
    assert found == known


async def test_a_report_is_answered_once(store: AnyStore, records: Records) -> None:
    account_id, report, now = records.id(), records.report(), records.clock.now()
    async with store.transaction() as transaction:
        await introduce(transaction, account_id)
        await transaction.reports.add(keyed(account_id, report), now)
    changed = replace(report, digest=b"other")
    with pytest.raises(Contention):
        async with store.transaction() as transaction:
            await transaction.reports.add(keyed(account_id, changed), now)
    async with store.snapshot() as transaction:
        found = await transaction.reports.find([(account_id, report.answer.report_id)])
    assert found == keyed(account_id, report)


async def claim(
    store: AnyStore, records: Records, key: str, fingerprint: bytes, by: UUID = API_KEY
) -> StoredAnswer | None:
    now = records.clock.now()
    async with store.transaction() as transaction:
        return await transaction.idempotency.claim(OWNER, by, key, fingerprint, now)


async def remember(store: AnyStore, key: str, sealed: bytes, by: UUID = API_KEY) -> None:
    async with store.transaction() as transaction:
        await transaction.idempotency.remember(OWNER, by, key, sealed)


async def test_the_first_to_claim_a_key_has_it(store: AnyStore, records: Records) -> None:
    assert await claim(store, records, "ä 🔑", b"\x00a") is None
    assert await claim(store, records, "another", b"\x00a") is None
    assert await claim(store, records, "ä 🔑", b"b") == StoredAnswer(b"\x00a", None)


async def test_the_remembered_answer_is_given_to_who_claims_later(
    store: AnyStore, records: Records
) -> None:
    await claim(store, records, "key", b"a")
    await claim(store, records, "other", b"a")
    await remember(store, "key", b"\xffsealed")

    assert await claim(store, records, "key", b"b") == StoredAnswer(b"a", b"\xffsealed")
    assert await claim(store, records, "other", b"b") == StoredAnswer(b"a", None)


async def test_a_key_is_free_again_after_a_day(store: AnyStore, records: Records) -> None:
    await claim(store, records, "key", b"a")
    await remember(store, "key", b"sealed")

    records.clock.advance((IDEMPOTENCY_LIFE - MILLISECOND).total_seconds())
    assert await claim(store, records, "key", b"b") == StoredAnswer(b"a", b"sealed")
    records.clock.advance(0.001)
    assert await claim(store, records, "key", b"b") is None
    assert await claim(store, records, "key", b"c") == StoredAnswer(b"b", None)


async def test_another_api_key_of_the_account_has_keys_of_its_own(
    store: AnyStore, records: Records
) -> None:
    await claim(store, records, "key", b"a")
    await remember(store, "key", b"sealed")
    assert await claim(store, records, "key", b"b", ANOTHER_API_KEY) is None
    assert await claim(store, records, "key", b"c", ANOTHER_API_KEY) == StoredAnswer(b"b", None)
    await remember(store, "key", b"another", ANOTHER_API_KEY)
    assert await claim(store, records, "key", b"a") == StoredAnswer(b"a", b"sealed")


async def test_an_answer_from_before_the_upgrade_is_given_to_every_api_key_for_its_day(
    store: AnyStore, records: Records
) -> None:
    await claim(store, records, "key", b"a", FROM_BEFORE)
    await remember(store, "key", b"sealed", FROM_BEFORE)
    for api_key in (API_KEY, ANOTHER_API_KEY):
        found = await claim(store, records, "key", b"b", api_key)
        assert found == StoredAnswer(b"a", b"sealed")

    records.clock.advance(IDEMPOTENCY_LIFE.total_seconds())
    assert await claim(store, records, "key", b"b") is None
    await remember(store, "key", b"mine")
    assert await claim(store, records, "key", b"c") == StoredAnswer(b"b", b"mine")
    assert await claim(store, records, "key", b"c", ANOTHER_API_KEY) is None


async def test_a_claim_from_before_the_upgrade_without_an_answer_holds_up_no_other(
    store: AnyStore, records: Records
) -> None:
    await claim(store, records, "key", b"a", FROM_BEFORE)
    assert await claim(store, records, "key", b"b") is None
    await remember(store, "key", b"mine")
    assert await claim(store, records, "key", b"b") == StoredAnswer(b"b", b"mine")
    assert await claim(store, records, "key", b"b", ANOTHER_API_KEY) is None


async def test_a_claim_that_is_rolled_back_leaves_the_key_free(
    store: AnyStore, records: Records
) -> None:
    async def fail() -> None:
        async with store.transaction() as transaction:
            await transaction.idempotency.claim(OWNER, API_KEY, "key", b"a", records.clock.now())
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert await claim(store, records, "key", b"b") is None
