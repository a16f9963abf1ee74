"""A transaction on PostgreSQL."""

from cuepost.adapters.storage.postgres_session import PostgresSession
from cuepost.adapters.storage.records.postgres_moves import PostgresMoves
from cuepost.adapters.storage.records.postgres_outcomes import PostgresOutcomeRecords
from cuepost.adapters.storage.records.postgres_queue import PostgresQueue
from cuepost.adapters.storage.records.postgres_retention import PostgresRetention
from cuepost.adapters.storage.transaction import RecordsTransaction, records


class PostgresTransaction(RecordsTransaction):
    session: PostgresSession
    queue = records(PostgresQueue)
    outcomes = records(PostgresOutcomeRecords)
    retention = records(PostgresRetention)
    moves = records(PostgresMoves)
