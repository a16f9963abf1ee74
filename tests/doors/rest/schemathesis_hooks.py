"""What schemathesis does differently over this service."""

import re
import uuid
from typing import Any

import schemathesis

from cuepost.doors.rest.openapi.document import IDEMPOTENCY_KEY
from cuepost.doors.rest.openapi.responses import INVALID, codes_of
from cuepost.doors.rest.table import OPERATIONS

CALLS = {(operation.method, operation.path): operation for operation in OPERATIONS}
LONGEST_WAIT_SECONDS = 30
"""That a call for events may ask for."""


@schemathesis.hook
def before_call(
    context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]
) -> None:
    """A call for events that may wait for long waits for a second: thousands of them are made.

    A valid Idempotency-Key is made unique: small ones are generated again and again, with other
    bodies, and such a request is rightly refused.
    """
    waits = str((case.query or {}).get("wait", ""))
    if waits.isdecimal() and 1 < int(waits) <= LONGEST_WAIT_SECONDS:
        case.query["wait"] = 1
    key = case.headers.get(IDEMPOTENCY_KEY) if case.headers else None
    if isinstance(key, str) and re.fullmatch("[!-~]{1,200}", key):
        case.headers[IDEMPOTENCY_KEY] = str(uuid.uuid4())


@schemathesis.check
def refusals_have_a_documented_code(
    context: schemathesis.CheckContext,
    response: schemathesis.Response,
    case: schemathesis.Case[Any],
) -> None:
    """All problems have the same schema, so the codes of each call are checked here."""
    operation = CALLS.get((case.method.upper(), case.operation.path))
    if operation is None or response.status_code < 400 or response.status_code == INVALID:
        return
    code = response.json()["code"]
    assert code in codes_of(operation).get(response.status_code, [code]), code
