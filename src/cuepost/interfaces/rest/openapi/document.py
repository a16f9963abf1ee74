"""Generates the OpenAPI 3.1 document from the route table."""

import re
from collections.abc import Sequence
from typing import Any

from cuepost import __version__
from cuepost.domain.access import KeyKind, kind_of
from cuepost.domain.account_reference import REFERENCE
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.interfaces.rest.openapi.events import webhooks_section
from cuepost.interfaces.rest.openapi.examples import example_of
from cuepost.interfaces.rest.openapi.links import path_ids
from cuepost.interfaces.rest.openapi.portable import Schema
from cuepost.interfaces.rest.openapi.responses import headers, problem_responses, responses_of
from cuepost.interfaces.rest.openapi.schemas import component_name, ref, schemas_of
from cuepost.interfaces.rest.operation import NoInput, Operation
from cuepost.interfaces.rest.request_input import ACCOUNT_ID

SCHEMES = {
    KeyKind.ACCOUNT: ("accountKey", "An API key of an account."),
    KeyKind.SERVICE: ("serviceKey", "A key of the operator, for the processing pipeline."),
    KeyKind.OPERATOR: ("operatorKey", "A key of the operator, for the accounts of a product."),
}
IDEMPOTENCY_KEY = "Idempotency-Key"

_TAGS = {
    "Milestones": "Status changes of projects, reported by the processing pipeline.",
    "Webhooks": "The endpoints of an account: receivers with their event types and secrets.",
    "Deliveries": "One event sent to one endpoint, with every attempt.",
    "Events": "What happened to projects, with the delivery status for each endpoint.",
    "Retries": "Retrying one or many deliveries.",
    "Listeners": "Streams of events for programs that cannot be reached from outside.",
    "Projects": "Video projects and the files of their exports.",
    "Members": "The people who sign in to the pages of an account, and invitations.",
    "Audit": "Who changed what.",
    "Accounts": "The accounts of the service, for the operator's own product.",
}

_ACCOUNT_ID: Schema = {
    "schema": {"type": "string", "pattern": REFERENCE.replace("?:", "")},
    "description": "The account's id, or `external:` and its external id.",
}
_DESCRIPTION = """\
Signed webhook notifications for a captioning and video-export product.

**Keys.** Every call needs `Authorization: Bearer <API_KEY>`. A key has scopes; the description of
each call names the scope that it needs. `webhooks:manage` includes `webhooks:read`,
`members:manage` includes `members:read`,
and `accounts:manage` includes `accounts:read`. An operator key is refused with 403
`wrong_kind_of_key` by every call except those of the tag Accounts, and these calls refuse every
other key.

**Lists** are newest first: `?limit=` and `?cursor=`, with the `nextCursor` of the previous page.

**Idempotency.** Every POST accepts an `Idempotency-Key` header (1 to 200 visible ASCII characters).
For 24 hours a request with the same key and the same body gets the first response again, with
`Idempotency-Replayed: true`; with another body it is refused with 422 `idempotency_key_reused`.
Idempotency keys are separate for each API key.

**Versions.** A response with one webhook or project has an `ETag`. With `If-Match` a change is made
only if the object still has that version; otherwise it is refused with 412 `precondition_failed`
and nothing is changed. With `If-None-Match` a GET of an unchanged object returns 304. The `health`
of a webhook is not part of its version.

**Errors** are `application/problem+json` with a stable `code`. An object of another account is
indistinguishable from one that does not exist. Unknown fields and parameters are refused by name.
"""


def openapi_document(
    operations: Sequence[Operation], base_url: str, policy: EgressPolicy
) -> dict[str, Any]:
    schemas = schemas_of(_models(operations), policy)
    paths: dict[str, Schema] = {}
    for operation in operations:
        path = paths.setdefault(operation.path, {})
        path[operation.method.lower()] = _operation(operation, operations, schemas)
    for query in {operation.query for operation in operations}:
        schemas.pop(component_name(query), None)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "cuepost",
            "version": __version__,
            "summary": "Webhooks for captioning and video export",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url}],
        "tags": [
            {"name": tag, "description": _TAGS[tag]}
            for tag in dict.fromkeys(each.tag for each in operations)
        ],
        "paths": paths,
        "webhooks": webhooks_section(),
        "components": {
            "schemas": schemas,
            "responses": problem_responses(operations),
            "headers": headers(),
            "parameters": {IDEMPOTENCY_KEY: _idempotency_key()},
            "securitySchemes": _security_schemes(),
        },
    }


def _models(operations: Sequence[Operation]) -> list[type[Any]]:
    named = [
        model
        for operation in operations
        for model in (operation.body, operation.query, operation.answer)
        if model is not None and model is not NoInput
    ]
    return list(dict.fromkeys(named))


def _operation(
    operation: Operation, operations: Sequence[Operation], schemas: dict[str, Schema]
) -> Schema:
    scheme, _ = SCHEMES[kind_of(frozenset({operation.scope}))]
    needs = f"Needs the scope `{operation.scope}`."
    if operation.webhooks:
        needs += " The account must have access to webhooks."
    made: Schema = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": f"{operation.description}\n\n{needs}".strip(),
        "security": [{scheme: [operation.scope.value]}],
    }
    parameters = [
        *_path_parameters(operation),
        *_query_parameters(operation, schemas),
        *_conditions(operation),
    ]
    if operation.takes_idempotency_key:
        parameters.append({"$ref": f"#/components/parameters/{IDEMPOTENCY_KEY}"})
    if parameters:
        made["parameters"] = parameters
    if operation.takes_body:
        content: Schema = {"schema": ref(component_name(operation.body))}
        if (example := example_of(operation.body)) is not None:
            content["example"] = example
        made["requestBody"] = {"required": True, "content": {"application/json": content}}
    made["responses"] = responses_of(operation, operations)
    return made


def _path_parameters(operation: Operation) -> list[Schema]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            **(_ACCOUNT_ID if name == ACCOUNT_ID else _id_of(name)),
        }
        for name in path_ids(operation)
    ]


def _id_of(name: str) -> Schema:
    return {
        "schema": {"type": "string", "format": "uuid"},
        "description": f"The {re.sub('Id$', '', name)}'s id.",
    }


def _query_parameters(operation: Operation, schemas: dict[str, Schema]) -> list[Schema]:
    if operation.query is NoInput:
        return []
    properties = schemas[component_name(operation.query)]["properties"]
    return [{"name": name, "in": "query", "schema": schema} for name, schema in properties.items()]


def _conditions(operation: Operation) -> list[Schema]:
    conditions = {
        "If-Match": (operation.takes_if_match, "Change only one of these versions; otherwise 412."),
        "If-None-Match": (
            operation.takes_if_none_match,
            "Versions that the client has; a match returns 304.",
        ),
    }
    return [
        {"name": name, "in": "header", "description": description, "schema": {"type": "string"}}
        for name, (is_taken, description) in conditions.items()
        if is_taken
    ]


def _idempotency_key() -> Schema:
    return {
        "name": IDEMPOTENCY_KEY,
        "in": "header",
        "description": "Choose a new key for each change. For 24 hours, repeating a request with"
        " its key changes nothing and returns the first response.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
    }


def _security_schemes() -> Schema:
    return {
        name: {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "cpk_…",
            "description": description,
        }
        for name, description in SCHEMES.values()
    }
