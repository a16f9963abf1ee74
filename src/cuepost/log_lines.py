"""Collects the log lines of one iteration of the event loop into one record of several lines.

Building a record and passing it through `logging` takes three times as long as writing its line.
"""

import asyncio
import logging
from contextvars import Context, ContextVar

# The id of the current request; every line that is logged during the request has it.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
# Lines of several requests share a record, which therefore belongs to none of them.
_NO_REQUEST = Context()


def log_store_error(
    logger: logging.Logger, event: str, error: Exception, operation: str, **further: object
) -> None:
    """`error` comes last in the line, because the message of the database contains spaces."""
    more = "".join(f" {name}={value}" for name, value in further.items())
    sqlstate = getattr(error, "sqlstate", None) or "-"
    logger.warning(
        "event=%s operation=%s%s sqlstate=%s error=%s", event, operation, more, sqlstate, error
    )


class LogLines:
    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._log, context=_NO_REQUEST)
        self._lines.append(line)

    def _log(self) -> None:
        lines, self._lines = self._lines, []
        self._logger.info("\n".join(lines))
