"""Pages have names in log and metrics, and a page that broke says which request it was."""

import logging

import anyio.lowlevel
import pytest

from cuepost.ports.store import StoreUnavailable
from tests.application.harness import Harness
from tests.interfaces.web.page_client import opened

OPERATION = "/settings/webhooks/{webhook_id}"


async def test_a_page_is_named_by_its_path_without_ids(
    sqlite_harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    page_client = await opened(sqlite_harness).sign_in()
    made = await sqlite_harness.endpoint()
    with caplog.at_level(logging.INFO, "cuepost.rest"):
        answer = await page_client.get(f"/settings/webhooks/{made.view.endpoint.id}")
        await anyio.lowlevel.checkpoint()
    assert answer.status_code == 200
    line = f"event=request operation={OPERATION} method=GET status=200"
    assert line in caplog.text
    assert f"request={answer.headers['x-request-id']}" in caplog.text
    metrics = await page_client.get("/metrics")
    assert f'operation="{OPERATION}"' in metrics.text
    assert str(made.view.endpoint.id) not in metrics.text


async def test_a_page_that_cannot_be_shown_names_the_request(
    sqlite_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    page_client = await opened(sqlite_harness).sign_in()

    def away() -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(sqlite_harness.store, "snapshot", away)
    answer = await page_client.get("/settings/webhooks")
    assert answer.status_code == 503
    assert f"request <code>{answer.headers['x-request-id']}</code>" in answer.text


async def test_a_page_that_is_not_there_needs_no_request_id(sqlite_harness: Harness) -> None:
    page_client = await opened(sqlite_harness).sign_in()
    answer = await page_client.get("/settings/webhooks/0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90")
    assert answer.status_code == 404
    assert "For the operator" not in answer.text
