"""Error messages for an unavailable store."""

from cuepost.ports.store import CommitUnknown, StoreError

_UNCHANGED = "The service cannot reach its store; nothing was changed. Try again in a moment."
_MAYBE_CHANGED = (
    "The service lost its store while saving, so the change may have been made. Repeat the "
    "request with the same Idempotency-Key or reportId; it is not applied twice."
)


def why_unavailable(error: StoreError) -> str:
    return _MAYBE_CHANGED if isinstance(error, CommitUnknown) else _UNCHANGED
