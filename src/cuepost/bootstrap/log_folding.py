"""Repeated warnings: the first is written at once, then one line per interval with their number.

So a database that is unavailable for a minute does not fill the disk, and no new warning is hidden.
"""

import copy
import logging
import re
from dataclasses import dataclass

from cuepost.log_lines import REQUEST_ID

INTERVAL_SECONDS = 10.0
# Beyond this many kinds at a time, further ones are not folded, and every line is written.
MOST_KINDS = 1_000
# Values that may differ between warnings of one kind. Errors are never folded across ids.
_VARYING = re.compile(r"\b(?:count|delivery|waiting)=\S+ ?")
_ERROR = re.compile(r" (?=sqlstate=|error=)|$")

_Kind = tuple[str, int, str, str]


@dataclass(slots=True)
class _Repeated:
    until: float
    last: logging.LogRecord
    request_id: str = ""
    count: int = 0


class Folding:
    """Called under the lock of the handler that writes the lines."""

    def __init__(self) -> None:
        self._kinds: dict[_Kind, _Repeated] = {}

    @property
    def is_idle(self) -> bool:
        return not self._kinds

    def holds_back(self, record: logging.LogRecord) -> bool:
        """Whether a line of the same kind was written less than an interval ago."""
        kind = _kind_of(record)
        known = self._kinds.get(kind)
        if known is not None:
            known.last, known.request_id = record, REQUEST_ID.get()
            known.count += 1
            return True
        if len(self._kinds) < MOST_KINDS:
            self._kinds[kind] = _Repeated(record.created + INTERVAL_SECONDS, record)
        return False

    def due(self, now: float) -> list[logging.LogRecord]:
        """A line for each kind that was held back in the interval that has ended."""
        lines = []
        for kind, repeated in list(self._kinds.items()):
            # The first comparison is for a wall clock that was set back.
            if repeated.until - INTERVAL_SECONDS <= now < repeated.until:
                continue
            if not repeated.count:
                del self._kinds[kind]
                continue
            lines.append(_summary(repeated))
            repeated.until, repeated.count = now + INTERVAL_SECONDS, 0
        return lines


def _kind_of(record: logging.LogRecord) -> _Kind:
    text = record.getMessage()
    if record.levelno < logging.ERROR:
        text = _VARYING.sub("", text)
    return record.name, record.levelno, text, repr(record.exc_info[1]) if record.exc_info else ""


def _summary(repeated: _Repeated) -> logging.LogRecord:
    """The last line with the number of repetitions; the traceback was in the first."""
    line = copy.copy(repeated.last)
    request = f"request={repeated.request_id} " if repeated.request_id else ""
    number = f" repeated={repeated.count} {request}"
    line.msg, line.args = _ERROR.sub(number, line.getMessage(), count=1).rstrip(), None
    line.exc_info = line.exc_text = line.stack_info = None
    return line
