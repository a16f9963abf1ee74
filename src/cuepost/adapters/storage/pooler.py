"""How a pooler such as PgBouncer assigns server connections."""

from enum import StrEnum

from cuepost.ports.store import StoreUnavailable


class Pooler(StrEnum):
    NONE = "none"
    SESSION = "session"
    TRANSACTION = "transaction"
    TRANSACTION_PREPARED = "transaction-prepared"

    @property
    def is_by_transaction(self) -> bool:
        """No session state outlives a transaction, except possibly prepared statements."""
        return self in (Pooler.TRANSACTION, Pooler.TRANSACTION_PREPARED)

    @property
    def keeps_statements(self) -> bool:
        return self is not Pooler.TRANSACTION


class WrongPooler(StoreUnavailable):
    """The connection goes through another kind of pooler than the settings say."""
