"""Log lines that are due in one turn of the event loop, as one record of several lines.

To build a record and to pass it through `logging` takes three times as long as to write its line.
"""

import asyncio
import logging
from contextvars import Context, ContextVar

# Of the request that is being answered. Whatever is logged meanwhile has it in its line.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
# Lines of several requests share a record, which therefore belongs to none of them.
_NO_REQUEST = Context()


def log_store_error(
    logger: logging.Logger, event: str, error: Exception, operation: str, **further: object
) -> None:
    """`error` comes last: it is what the database said, with spaces in it."""
    more = "".join(f" {name}={value}" for name, value in further.items())
    sqlstate = getattr(error, "sqlstate", None) or "-"
    logger.warning(
        "event=%s operation=%s%s sqlstate=%s error=%s", event, operation, more, sqlstate, error
    )


class LogLines:
    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._lines: list[str] = []

    @property
    def are_wanted(self) -> bool:
        return self._logger.isEnabledFor(logging.INFO)

    def add(self, line: str) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._log, context=_NO_REQUEST)
        self._lines.append(line)

    def _log(self) -> None:
        lines, self._lines = self._lines, []
        self._logger.info("\n".join(lines))
