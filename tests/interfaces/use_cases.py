"""Records the use cases that an interface calls, so that interfaces can be compared."""

import re
from dataclasses import dataclass, fields, replace
from typing import Any

import httpx2

from cuepost.application.service import Service
from cuepost.domain.access import KeyKind, kind_of
from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.interfaces.rest.openapi.examples import example_of
from cuepost.interfaces.rest.table import OPERATIONS
from tests.application.harness import BASE_URL

GROUPS = (
    "members",
    "account_members",
    "portal",
    "projects",
    "results",
    "milestones",
    "webhooks",
    "history",
    "redeliver",
    "listeners",
    "accounts",
)


@dataclass(frozen=True)
class Noted:
    """A use case that notes which of its methods are called."""

    inner: Any
    group: str
    calls: set[str]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if callable(found):
            self.calls.add(f"{self.group}.{name}")
        return found


def noting(service: Service, calls: set[str]) -> Service:
    assert {field.name for field in fields(service)} >= set(GROUPS)
    noted: dict[str, Any] = {
        group: Noted(getattr(service, group), group, calls) for group in GROUPS
    }
    return replace(service, **noted)


async def used_by_rest(
    service: Service, owner: str, pipeline: str, operator: str
) -> dict[str, set[str]]:
    """Each call, with ids of nothing: the use case is asked, and then finds nothing."""
    keys = {KeyKind.ACCOUNT: owner, KeyKind.SERVICE: pipeline, KeyKind.OPERATOR: operator}
    found: dict[str, set[str]] = {}
    for operation in OPERATIONS:
        calls: set[str] = set()
        app = create_app(
            noting(service, calls),
            base_url=BASE_URL,
            health=HealthChecks(service.perform.store.check),
        )
        calls.clear()
        path = re.sub(r"{\w+}", "0198c0de-5a3b-7d21-9c4e-000000000009", operation.path)
        key = keys[kind_of(frozenset({operation.scope}))]
        params = {"namePrefix": "a"} if operation.name == "listAccounts" else None
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url=BASE_URL
        ) as http:
            await http.request(
                operation.method,
                path,
                params=params,
                headers={"Authorization": f"Bearer {key}"},
                json=example_of(operation.body) if operation.takes_body else None,
            )
        found[operation.name] = calls
    return found
