"""OpenAPI links: the calls that take an id from a response."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from cuepost.domain.access import kind_of
from cuepost.interfaces.rest.operation import Operation

# For each call, where its request or response has ids that other calls take.
_IDS: Mapping[str, Mapping[str, str]] = {
    "createWebhook": {"webhookId": "$response.body#/id"},
    "sendTest": {
        "webhookId": "$request.path.webhookId",
        "deliveryId": "$response.body#/id",
        "eventId": "$response.body#/eventId",
    },
    "startBulkRetry": {
        "webhookId": "$request.path.webhookId",
        "retryId": "$response.body#/id",
    },
    "registerListener": {"listenerId": "$response.body#/id"},
    "createAccount": {"accountId": "$response.body#/id"},
    "createAccountKey": {
        "accountId": "$request.path.accountId",
        "keyId": "$response.body#/id",
    },
    "addAccountMember": {
        "accountId": "$request.path.accountId",
        "memberId": "$response.body#/id",
    },
    "createPortalLink": {
        "accountId": "$request.path.accountId",
        "portalLinkId": "$response.body#/id",
    },
    "createInvitation": {"invitationId": "$response.body#/id"},
    "createProject": {"projectId": "$response.body#/id"},
}


def path_ids(operation: Operation) -> list[str]:
    return re.findall(r"{(\w+)}", operation.path)


def links_of(operation: Operation, operations: Iterable[Operation]) -> dict[str, Any]:
    """Links to every call that takes an id which this call has created."""
    ids = _IDS.get(operation.name, {})
    kind = kind_of(frozenset({operation.scope}))
    made = {name for name, place in ids.items() if place.startswith("$response")}
    return {
        other.name: {
            "operationId": other.name,
            "parameters": {name: ids[name] for name in path_ids(other)},
        }
        for other in operations
        if kind_of(frozenset({other.scope})) is kind
        and made & set(path_ids(other))
        and set(path_ids(other)) <= set(ids)
    }
