"""Whether a request may have changed something by the time that it fails or is cut off."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from cuepost.ports.store import CommitUnknown


@dataclass(slots=True)
class Saving:
    """`begun`: a commit was begun, and it is not known that it failed."""

    begun: bool = False


OF_REQUEST: ContextVar[Saving | None] = ContextVar("saving", default=None)


@contextmanager
def track_saving(of_request: Saving | None) -> Iterator[None]:
    """Track commits inside the block in `of_request`; with None they are not tracked."""
    before = OF_REQUEST.set(of_request)
    try:
        yield
    finally:
        OF_REQUEST.reset(before)


def may_have_saved() -> None:
    """Another task continues the request's change, so it may be saved even if the request ends."""
    request = OF_REQUEST.get()
    if request is not None:
        request.begun = True


@contextmanager
def committing() -> Iterator[None]:
    """Wraps each commit of a change."""
    request = OF_REQUEST.get()
    if request is None:
        yield
        return
    before, request.begun = request.begun, True
    try:
        yield
    except CommitUnknown:
        raise
    except Exception:
        request.begun = before
        raise
