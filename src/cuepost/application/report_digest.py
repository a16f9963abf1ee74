"""A digest that shows whether two reports with the same id have the same content."""

import hashlib

from cuepost.application.milestone_batch import Milestone
from cuepost.domain.event_catalog import ERROR_MESSAGE_LIMIT
from cuepost.domain.instants import to_millis
from cuepost.domain.project import STAGE_OF

_DIGEST_BYTES = 16


def digest_of(milestone: Milestone) -> bytes:
    """Covers the meaning of the report: neither an implied stage nor text past the limit counts.

    Every part but the artifacts has a fixed place, and no text contains the separator.
    """
    error, artifacts, occurred_at = milestone.error, milestone.artifacts, milestone.occurred_at
    parts = [
        milestone.project_id.hex,
        milestone.status,
        "" if milestone.status in STAGE_OF else milestone.stage or "",
        "" if occurred_at is None else str(to_millis(occurred_at)),
        "" if error is None else error.code,
        "" if error is None else error.message[:ERROR_MESSAGE_LIMIT],
        "" if artifacts is None else str(len(artifacts)),
    ]
    for each in artifacts or ():
        parts += (each.kind, each.name, each.key, each.content_type, str(each.size_bytes))
    return hashlib.sha256("\0".join(parts).encode()).digest()[:_DIGEST_BYTES]
