"""Every call of the API as a `.http` file, for editors that can send requests."""

import json
import re
from collections.abc import Iterator, Mapping

from cuepost.domain.access import KeyKind, kind_of
from cuepost.interfaces.rest.openapi.examples import example_of
from cuepost.interfaces.rest.operation import NoInput, Operation
from cuepost.interfaces.rest.table import OPERATIONS

_HEAD = """\
# Every call of the API, for editors that send .http files: VS Code with REST Client, and others.
# The keys come from the environment: CUEPOST_API_KEY of an account, CUEPOST_SERVICE_KEY of the
# pipeline, CUEPOST_OPERATOR_KEY of the operator. Send the calls from top to bottom: later calls use
# ids from earlier responses.

@url = BASE_URL
@apiKey = {{$processEnv CUEPOST_API_KEY}}
@serviceKey = {{$processEnv CUEPOST_SERVICE_KEY}}
@operatorKey = {{$processEnv CUEPOST_OPERATOR_KEY}}
"""
_TAGS = (
    "Projects",
    "Webhooks",
    "Milestones",
    "Events",
    "Deliveries",
    "Retries",
    "Listeners",
    "Members",
    "Audit",
    "Accounts",
)
_KEYS = {
    KeyKind.ACCOUNT: "apiKey",
    KeyKind.SERVICE: "serviceKey",
    KeyKind.OPERATOR: "operatorKey",
}
# These come late in the file; the example of updateWebhook disables the endpoint.
_STOPPING = ("cancelProject", "updateWebhook")
# The calls whose responses contain the ids that later calls use.
_IDS = {
    "projectId": ("createProject", "$.id"),
    "webhookId": ("createWebhook", "$.id"),
    "eventId": ("listEvents", "$.data[0].id"),
    "deliveryId": ("listDeliveries", "$.data[0].id"),
    "retryId": ("startBulkRetry", "$.id"),
    "listenerId": ("registerListener", "$.id"),
    "memberId": ("listMembers", "$.data[0].id"),
    "invitationId": ("createInvitation", "$.id"),
    "accountId": ("createAccount", "$.id"),
    "keyId": ("createAccountKey", "$.id"),
    "portalLinkId": ("createPortalLink", "$.id"),
}
# In the calls of the operator, the member of the account that was just created.
_OF_OPERATOR = _IDS | {"memberId": ("addAccountMember", "$.id")}
# The invitation that took the place of the first one.
_AFTER_RESENDING = _IDS | {"invitationId": ("resendInvitation", "$.id")}


def http_file(base_url: str) -> str:
    head = _HEAD.replace("BASE_URL", base_url)
    return "\n".join([head, *(_request(each) for each in sorted(OPERATIONS, key=_place))])


def _place(operation: Operation) -> tuple[bool, int, bool, bool]:
    """Calls that create ids come first; deletions come last, in reverse order."""
    place, deletes = _TAGS.index(operation.tag), operation.method == "DELETE"
    gives_ids = operation.name in {name for name, _ in _OF_OPERATOR.values()}
    takes_away = deletes or operation.name in _STOPPING
    return takes_away, -place if takes_away else place, deletes, not gives_ids


def _request(operation: Operation) -> str:
    return "\n".join([*_lines(operation), ""])


def _lines(operation: Operation) -> Iterator[str]:
    yield f"### {operation.summary}"
    yield f"# @name {operation.name}"
    if operation.query is not NoInput:
        names = ", ".join(operation.query.__struct_encode_fields__)
        yield f"# Optional query parameters: {names}"
    ids = _ids_for(operation)
    path = re.sub(r"{(\w+)}", lambda found: _variable(ids, found[1]), operation.path)
    yield f"{operation.method} {{{{url}}}}{path}"
    key = _KEYS[kind_of(frozenset({operation.scope}))]
    yield f"Authorization: Bearer {{{{{key}}}}}"
    if operation.takes_body:
        yield "Content-Type: application/json"
        yield ""
        example = json.dumps(example_of(operation.body), indent=2, ensure_ascii=False)
        yield re.sub(
            r'"(\w+Id)": "[0-9a-f-]{36}"',
            lambda found: f'"{found[1]}": "{_variable(ids, found[1])}"',
            example,
        )


def _ids_for(operation: Operation) -> Mapping[str, tuple[str, str]]:
    if kind_of(frozenset({operation.scope})) is KeyKind.OPERATOR:
        return _OF_OPERATOR
    return _AFTER_RESENDING if operation.name == "revokeInvitation" else _IDS


def _variable(ids: Mapping[str, tuple[str, str]], name: str) -> str:
    call, path = ids[name]
    return f"{{{{{call}.response.body.{path}}}}}"
