"""Closed lists are stored as numbers, and a number means the same for ever."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.migrations import old_columns
from cuepost.adapters.storage.tables import attempts, deliveries, metadata
from cuepost.adapters.storage.types import Code
from cuepost.domain.attempt import Outcome
from tests.support.records import Records
from tests.support.store_population import populate
from tests.support.store_rows import AnyStore, rows, run

# A new value gets the next number; nothing else in here may ever change.
CODES = {
    "status": {
        "pending": 1,
        "delivering": 2,
        "retrying": 3,
        "delivered": 4,
        "failed": 5,
        "cancelled": 6,
    },
    "trigger": {"automatic": 1, "manual": 2, "test": 3},
    "cancel reason": {
        "endpoint_disabled": 1,
        "project_deleted": 2,
        "project_access_expired": 3,
        "access_closed": 4,
    },
    "event type": {
        "project.completed": 1,
        "project.failed": 2,
        "project.ready": 3,
        "project.cancelled": 4,
        "webhook.test": 5,
        "endpoint.failing": 6,
        "endpoint.recovered": 7,
    },
    "outcome": {
        "delivered": 1,
        "http_error": 2,
        "redirect": 3,
        "timeout": 4,
        "connect_error": 6,
        "tls_error": 7,
        "blocked_destination": 8,
        "protocol_error": 9,
        "interrupted": 10,
        "superseded": 11,
    },
    "TLS fault": {
        "certificate_expired": 1,
        "certificate_not_yet_valid": 2,
        "certificate_wrong_host": 3,
        "certificate_unknown_authority": 4,
        "tls_too_old": 5,
        "tls_handshake_failed": 6,
    },
    "silence reason": {
        "not_subscribed": 1,
        "standalone_transcript": 2,
        "project_deleted": 3,
        "project_access_expired": 4,
        "no_event_for_status": 5,
        "illegal_transition": 6,
        "project_not_found": 7,
        "invalid": 8,
        "report_id_reused": 9,
        "endpoint_disabled": 10,
        "access_closed": 11,
        "account_moved": 12,
    },
    "project kind": {"video": 1, "transcript": 2},
    "project origin": {"app": 1, "api": 2, "mcp": 3},
    "project status": {
        "queued": 1,
        "processing": 2,
        "ready": 3,
        "exporting": 4,
        "completed": 5,
        "failed": 6,
        "cancelled": 7,
    },
    "project stage": {"processing": 1, "export": 2},
}
# Not written any more; what is read in their place is in `test_a_retired_code_…`.
RETIRED = {"outcome": {"dns_error": 5}}
# The lists of revision 0006 end where these did then.
IN_REVISION_0006 = {
    "status": old_columns.STATUSES,
    "trigger": old_columns.TRIGGERS,
    "cancel reason": old_columns.CANCEL_REASONS,
    "event type": old_columns.EVENT_TYPES,
    "outcome": old_columns.OUTCOMES,
    "TLS fault": old_columns.TLS_FAULTS,
    "silence reason": old_columns.SILENCE_REASONS,
    "project kind": old_columns.KINDS,
    "project origin": old_columns.ORIGINS,
    "project status": old_columns.PROJECT_STATUSES,
    "project stage": old_columns.STAGES,
}
LIST_OF = {
    "attempts.outcome": "outcome",
    "attempts.tls_fault": "TLS fault",
    "attempts.trigger": "trigger",
    "deliveries.event_type": "event type",
    "deliveries.outcome": "outcome",
    "deliveries.reason": "cancel reason",
    "deliveries.status": "status",
    "deliveries.tls_fault": "TLS fault",
    "deliveries.trigger": "trigger",
    "events.reason": "silence reason",
    "events.type": "event type",
    "projects.kind": "project kind",
    "projects.origin": "project origin",
    "projects.stage": "project stage",
    "projects.status": "project status",
    "queue.event_type": "event type",
    "queue.status": "status",
    "queue.stop_reason": "cancel reason",
    "queue.trigger": "trigger",
    "reports.reason": "silence reason",
}


def coded() -> Iterator[tuple[str, sa.Column[str], Code]]:
    for table in metadata.sorted_tables:
        for column in table.c:
            if isinstance(column.type, Code):
                yield str(column), column, column.type


def test_every_value_of_every_coded_column_has_the_number_that_it_always_had() -> None:
    found = {
        name: {value: code for value, code in kind.codes.items() if value is not None}
        for name, _, kind in coded()
    }
    assert found == {name: CODES[which] for name, which in LIST_OF.items()}


@pytest.mark.parametrize("which", CODES)
def test_the_migration_gives_the_numbers_of_the_schema(which: str) -> None:
    numbered = {value: place for place, value in enumerate(IN_REVISION_0006[which], start=1)}
    known = CODES[which] | RETIRED.get(which, {})
    assert numbered.items() <= known.items()
    assert sorted(known.values()) == list(range(1, len(known) + 1))


async def test_a_retired_code_is_read_as_the_value_in_its_place(
    store: AnyStore, records: Records
) -> None:
    """Attempts from before are shown to accounts as those of today."""
    await populate(store, records)
    for column in (attempts.c.outcome, deliveries.c.outcome):
        old = sa.update(column.table).values({column.name: sa.literal_column("5")})
        assert await run(store, old)
        found = await rows(store, sa.select(column).where(column.is_not(None)))
        assert {row[0] for row in found} == {Outcome.BLOCKED_DESTINATION}


async def test_every_value_comes_back_from_every_coded_column(
    store: AnyStore, records: Records
) -> None:
    await populate(store, records)
    for name, column, kind in coded():
        for value in kind.of.listed:
            assert await run(store, sa.update(column.table).values({column.name: value})), name
            found = await rows(store, sa.select(column))
            assert {row[0] for row in found} == {value}, name
            assert all(type(row[0]) is type(value) for row in found), name


async def test_a_column_takes_no_value_that_is_not_in_its_list(
    store: AnyStore, records: Records
) -> None:
    await populate(store, records)
    for name, column, _ in coded():
        with pytest.raises(KeyError):
            await run(store, sa.update(column.table).values({column.name: f"no {name}"}))
