"""A signing secret and an API key are seen where they are given out, and nowhere else."""

import logging
import traceback
from typing import Any

import pytest

from cuepost.domain.signing import SigningSecret
from cuepost.interfaces.rest.openapi.examples import example_of
from cuepost.interfaces.rest.table import OPERATIONS
from cuepost.interfaces.wire_models.webhooks import CreatedWebhook, RotatedSecret
from tests.interfaces.rest.client import NOW, URL, Api

UNVEILING = ("createWebhook", "rotateSecret", "createAccountKey")


def forms(token: str) -> tuple[str, ...]:
    """The token, and its secret half alone."""
    return (token, token[36:])


def secret_forms(secret: str) -> tuple[str, ...]:
    key = SigningSecret.parse(secret).key
    return (secret.removeprefix("whsec_"), key.hex(), repr(key)[2:-1])


async def drive(api: Api, webhook_id: str, delivery_id: str, project_id: str) -> list[str]:
    """Every call but those that give a secret out: as they should be, and in several wrong ways."""
    seen: list[str] = []
    ids = {
        "{webhookId}": webhook_id,
        "{deliveryId}": delivery_id,
        "{projectId}": project_id,
        "{eventId}": delivery_id,
        "{retryId}": delivery_id,
        "{accountId}": str((await api.harness.new_owner()).account),
        "{keyId}": delivery_id,
    }
    harmless = [each for each in OPERATIONS if each.name not in UNVEILING]
    for operation in sorted(harmless, key=lambda each: each.method == "DELETE"):
        path = operation.path
        for mark, value in ids.items():
            path = path.replace(mark, value)
        body = example_of(operation.body) if operation.takes_body else None
        ways: list[dict[str, Any]] = [
            {"body": body},
            {"body": body, "params": {"x": "1"}},
            {"content": b"{", "headers": {"Content-Type": "application/json"}},
            {"body": body, "key": api.owner[:-1] + "A"},
            {"body": body, "key": api.pipeline},
            {"body": body, "key": api.operator},
        ]
        for way in ways:
            answer = await api.call(operation.method, path, way.pop("body", None), **way)
            seen += [answer.text, str(answer.headers)]
    for path in ("/metrics", "/openapi.json", "/docs", "/healthz", "/readyz", "/none"):
        seen.append((await api.call("GET", path)).text)
    return seen


async def test_secrets_and_keys_appear_in_no_answer_log_line_or_repr(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    idempotent = {"Idempotency-Key": "k"}
    created = await api.done("POST", "/v1/webhooks", {"url": URL}, headers=idempotent)
    path = f"/v1/webhooks/{created['id']}"
    rotated = await api.done(
        "POST", f"{path}/rotate-secret", headers=idempotent | {"Idempotency-Key": "r"}
    )
    refused = await api.call("POST", f"{path}/rotate-secret")
    other = await api.call("POST", "/v1/webhooks", {"url": "https://localhost/"})
    project = await api.harness.project()
    delivery = await api.done("POST", f"{path}/test")
    seen = await drive(api, created["id"], delivery["id"], str(project.id))
    seen += [refused.text, other.text]
    seen += [record.getMessage() for record in caplog.records]
    seen += [
        "".join(traceback.format_exception(*record.exc_info))
        for record in caplog.records
        if record.exc_info
    ]
    seen.append(repr(await api.stored()))
    everything = "\n".join(seen)
    canaries = [
        *secret_forms(created["secret"]),
        *secret_forms(rotated["secret"]),
        *forms(api.owner),
        *forms(api.pipeline),
    ]
    assert [canary for canary in canaries if canary in everything] == []
    assert "event=request operation=listWebhooks" in everything


async def test_a_wrong_key_is_not_repeated_to_its_sender(
    sqlite_api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = await sqlite_api.call("GET", "/v1/webhooks", key="cpk_almost_a_key")
    assert "almost" not in answer.text
    assert "almost" not in caplog.text


async def test_what_carries_a_secret_hides_it_in_its_repr(sqlite_api: Api) -> None:
    made = await sqlite_api.harness.endpoint()
    secret = made.secret.reveal()
    for shown in (CreatedWebhook.of(made), RotatedSecret.of(made)):
        assert shown.secret == secret
        assert secret.removeprefix("whsec_") not in repr(shown)
        assert made.secret.hint in repr(shown)
    listed = await sqlite_api.done("GET", "/v1/deliveries", params={"since": NOW})
    assert secret not in str(listed)
