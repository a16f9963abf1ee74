"""What callers are told while the store cannot be used."""

from cuepost.ports.store import CommitUnknown, StoreError

_UNCHANGED = "The service cannot reach its store now; nothing was changed. Try again in a moment."
_MAYBE_CHANGED = (
    "The service lost its store while it saved, so the change may have been made. Repeat the "
    "request with the same Idempotency-Key or reportId: it is not done twice."
)


def why_unavailable(error: StoreError) -> str:
    return _MAYBE_CHANGED if isinstance(error, CommitUnknown) else _UNCHANGED
