"""The formats of log lines for terminals and as JSON; `logs` has the one for files.

Messages are `name=value` pairs, perhaps followed by a sentence. All formats show the same, but the
one for terminals leaves out rarely needed values.
"""

import json
import logging
import re
import time
from collections.abc import Iterator
from typing import Any

from cuepost.log_lines import REQUEST_ID

_PAIR = re.compile(r'(\w+)=("[^"]*"|\S*)(?:\s+|$)')
_NUMBERS = frozenset({"budget", "count", "ms", "number", "repeated", "status", "waiting"})
_JSON_NAMES = {
    "account": "accountId",
    "delivery": "deliveryId",
    "request": "requestId",
    "webhook": "webhookId",
}
_ATTEMPT_LOGGER = "cuepost.attempt"
# The line of an attempt has no event name; its `event` is the id of the event that is sent.
_ATTEMPT_NAMES = _JSON_NAMES | {"event": "eventId", "type": "eventType"}
_NOT_ON_TERMINALS = re.compile(
    r"\b(?:account|webhook|budget|trigger|dns_ms|connect_ms|tls_ms|first_byte_ms)=\S+ ?"
    r"|\b\w+=-(?: |$)"
)


class TerminalLines(logging.Formatter):
    """Time of day, logger, and the values that operators usually need."""

    default_time_format = "%H:%M:%S"
    default_msec_format = ""

    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname} "
        beginning = f"{self.formatTime(record)} {level}{record.name.removeprefix('cuepost.')}: "
        request_id = REQUEST_ID.get()
        message = record.getMessage() + (f" request={request_id}" if request_id else "")
        lines = [_NOT_ON_TERMINALS.sub("", line).rstrip() for line in message.split("\n")]
        if record.exc_info:
            lines += self.formatException(record.exc_info).split("\n")
        return "\n".join(beginning + line for line in lines)


class JsonLines(logging.Formatter):
    """One object per line, with the pairs of the message as its members."""

    def format(self, record: logging.LogRecord) -> str:
        objects = [dict(_members(record, line)) for line in record.getMessage().split("\n")]
        if request_id := REQUEST_ID.get():
            objects[-1].setdefault("requestId", request_id)
        if record.exc_info:
            objects[-1]["exception"] = self.formatException(record.exc_info)
        return "\n".join(json.dumps(each, ensure_ascii=False) for each in objects)


def _members(record: logging.LogRecord, line: str) -> Iterator[tuple[str, Any]]:
    second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    yield "time", f"{second}.{int(record.msecs):03d}Z"
    yield "level", record.levelname.lower()
    yield "logger", record.name
    is_attempt = record.name == _ATTEMPT_LOGGER and line.startswith("account=")
    if is_attempt:
        yield "event", "attempt"
    names = _ATTEMPT_NAMES if is_attempt else _JSON_NAMES
    place = 0
    while pair := _PAIR.match(line, place):
        if pair[1] == "error":
            # A message of a library, which may contain spaces, so it is always last.
            yield "error", line[pair.start(2) :]
            return
        yield names.get(pair[1], pair[1]), _value(pair[1], pair[2])
        place = pair.end()
    if place < len(line):
        yield "message", line[place:]


def _value(name: str, text: str) -> str | float | None:
    if text == "-":
        return None
    if name in _NUMBERS or name.endswith("_ms"):
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            return text
    return text.strip('"')
