"""What schemathesis does differently over this service."""

import re
import uuid
from datetime import UTC, datetime
from typing import Any

import schemathesis

from cuepost.interfaces.rest.openapi.document import IDEMPOTENCY_KEY
from cuepost.interfaces.rest.openapi.responses import INVALID, codes_of
from cuepost.interfaces.rest.table import OPERATIONS

CALLS = {(operation.method, operation.path): operation for operation in OPERATIONS}
LONGEST_WAIT_SECONDS = 30
"""That a call for events may ask for."""
FUTURE = "9000-01-01T00:00:00Z"
ENDS = {"createProject": "accessExpiresAt", "createAccountKey": "expiresAt"}


@schemathesis.hook
def before_call(
    context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]
) -> None:
    """A call for events that may wait for long waits for a second: thousands of them are made.

    A valid Idempotency-Key is made unique: small ones are generated again and again, with other
    bodies, and such a request is rightly refused.

    No schema can say that a new project's access has to end in the future, and a new key as well.
    """
    waits = str((case.query or {}).get("wait", ""))
    if waits.isdecimal() and 1 < int(waits) <= LONGEST_WAIT_SECONDS:
        case.query["wait"] = 1
    key = case.headers.get(IDEMPOTENCY_KEY) if case.headers else None
    if isinstance(key, str) and re.fullmatch("[!-~]{1,200}", key):
        case.headers[IDEMPOTENCY_KEY] = str(uuid.uuid4())
    end = ENDS.get(str(case.operation.definition.raw.get("operationId")))
    body = case.body
    if end is not None and isinstance(body, dict) and is_past(body.get(end)):
        case.body = body | {end: FUTURE}


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


def is_past(value: Any) -> bool:
    """Whether it is a time that the schema allows, and over."""
    try:
        instant = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return instant.tzinfo is not None and instant.year >= 1970 and instant < datetime.now(UTC)
