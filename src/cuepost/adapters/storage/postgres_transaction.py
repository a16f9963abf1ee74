"""A transaction on PostgreSQL."""

from cuepost.adapters.storage.records.postgres_moves import PostgresMoves
from cuepost.adapters.storage.records.postgres_outcomes import PostgresOutcomeRecords
from cuepost.adapters.storage.records.postgres_queue import PostgresQueue
from cuepost.adapters.storage.records.postgres_retention import PostgresRetention
from cuepost.adapters.storage.transaction import RecordsTransaction


class PostgresTransaction(RecordsTransaction):
    _queue = PostgresQueue
    _outcomes = PostgresOutcomeRecords
    _retention = PostgresRetention
    _moves = PostgresMoves
