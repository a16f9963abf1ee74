"""A transaction on SQLite."""

from cuepost.adapters.storage.records.moves import AccountMoveRecords
from cuepost.adapters.storage.records.sqlite_outcomes import SqliteOutcomeRecords
from cuepost.adapters.storage.records.sqlite_queue import SqliteQueue
from cuepost.adapters.storage.records.sqlite_retention import SqliteRetention
from cuepost.adapters.storage.sqlite_session import SqliteSession
from cuepost.adapters.storage.transaction import RecordsTransaction, records


class SqliteTransaction(RecordsTransaction):
    session: SqliteSession
    queue = records(SqliteQueue)
    outcomes = records(SqliteOutcomeRecords)
    retention = records(SqliteRetention)
    moves = records(AccountMoveRecords)
