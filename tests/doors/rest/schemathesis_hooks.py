"""What schemathesis does differently over this service."""

from typing import Any

import schemathesis

LONGEST_WAIT_SECONDS = 30
"""That a call for events may ask for."""


@schemathesis.hook
def before_call(
    context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]
) -> None:
    """A call for events that may wait for long waits for a second: thousands of them are made."""
    waits = str((case.query or {}).get("wait", ""))
    if waits.isdecimal() and 1 < int(waits) <= LONGEST_WAIT_SECONDS:
        case.query["wait"] = 1
