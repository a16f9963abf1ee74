"""Deliveries in the pages: inspected, found, watched, and retried."""

import asyncio
import json
import re
from dataclasses import replace
from html import unescape
from uuid import UUID

import pytest

from cuepost.application.browse_history import DeliveryDetail
from cuepost.domain.attempt import TLS_EXPLANATIONS, Attempt, Outcome, TlsFault
from cuepost.domain.bulk_retry import BulkRetryState
from cuepost.domain.delivery import DeliveryStatus
from cuepost.interfaces.web import live_rows
from cuepost.ports.store import Transaction
from tests.interfaces.web.endpoints import LIST, created
from tests.interfaces.web.page_client import PageClient
from tests.support.records import Records


async def _added(transaction: Transaction, attempt: Attempt) -> None:
    await transaction.attempts.add([attempt])


async def ended(page_client: PageClient, webhook_id: UUID, *statuses: DeliveryStatus) -> list[UUID]:
    """Deliveries of one project each, the newest last."""
    records = Records(page_client.harness.clock, page_client.harness.ids)
    harness, made = page_client.harness, []
    for status in statuses:
        delivery = await harness.complete()
        assert delivery.webhook_id == webhook_id
        harness.clock.advance(seconds=1)
        good = status is DeliveryStatus.DELIVERED
        attempt = records.attempt(
            delivery,
            outcome=Outcome.DELIVERED if good else Outcome.HTTP_ERROR,
            response_status=200 if good else 404,
            response_body=b"<script>alert(1)</script>",
        )
        await harness.do(_added, attempt)
        await harness.count_attempts(delivery, 1)
        await harness.end(delivery, status)
        made.append(delivery.id)
    return made


async def test_history_is_inspected_in_the_settings_with_filters_and_search(
    page_client: PageClient,
) -> None:
    webhook_id = await created(page_client)
    good, bad = await ended(
        page_client, webhook_id, DeliveryStatus.DELIVERED, DeliveryStatus.FAILED
    )
    all_of_it = "/settings/deliveries"

    async def shown(query: str) -> set[UUID]:
        text = (await page_client.get(f"{all_of_it}?{query}")).text
        return {each for each in (good, bad) if f"row-{each}" in text}

    assert await shown("") == {good, bad}
    assert await shown("status=failed") == {bad}
    assert await shown("outcome=delivered") == {good}
    assert await shown("class=4xx") == {bad}
    assert await shown("class=5xx&outcome=http_error") == set()
    assert await shown("type=project.ready") == set()
    assert await shown(f"endpoint={webhook_id}") == {good, bad}
    assert await shown("since=2030-01-01T00:00") == set()
    assert await shown("status=nonsense&since=never&endpoint=x") == {good, bad}
    harness = page_client.harness
    detail: DeliveryDetail = await harness.see(
        harness.service.history.delivery, harness.owner, webhook_id, bad
    )
    here = f"{LIST}/{webhook_id}/deliveries/{bad}"
    for sought, found in (
        (bad, here),
        (detail.event.id, f"/settings/events/{detail.event.id}"),
        (detail.delivery.project_id, f"{all_of_it}?project={detail.delivery.project_id}"),
    ):
        answer = await page_client.get(f"{all_of_it}?q={sought}")
        assert answer.headers["location"] == found
    assert (await page_client.get(f"{all_of_it}?q=%00")).status_code == 200
    nothing = await page_client.get(f"{all_of_it}?q=nothing")
    assert "No results" in nothing.text
    page = (await page_client.get(here)).text
    assert "Your server answered 404: is the path right?" in page
    assert "<script>alert(1)</script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


async def test_an_expired_certificate_is_named_in_the_pages(page_client: PageClient) -> None:
    webhook_id = await created(page_client)
    harness, expired = page_client.harness, TlsFault.CERTIFICATE_EXPIRED
    delivery = await harness.complete()
    attempt = Records(harness.clock, harness.ids).attempt(
        delivery, outcome=Outcome.TLS_ERROR, tls_fault=expired, response_status=None
    )
    await harness.do(_added, attempt)
    await harness.count_attempts(delivery, 1)
    await harness.end(delivery, DeliveryStatus.FAILED)
    page = unescape((await page_client.get(f"{LIST}/{webhook_id}/deliveries/{delivery.id}")).text)
    said = TLS_EXPLANATIONS[expired]
    assert f"{said.sentence} {said.fix} No attempts are left" in page
    assert f"<strong>{said.sentence}</strong> {said.fix}" in page


async def test_older_deliveries_are_on_the_next_page(page_client: PageClient) -> None:
    webhook_id = await created(page_client)
    made = await ended(page_client, webhook_id, *[DeliveryStatus.FAILED] * 21)
    page = (await page_client.get("/settings/deliveries?status=failed")).text
    assert f"row-{made[0]}" not in page
    older = re.search(r'href="([^"]+before=[^"]+)"', page)
    assert older is not None
    assert f"row-{made[0]}" in (await page_client.get(unescape(older[1]))).text


async def test_a_delivery_is_retried_in_the_settings(page_client: PageClient) -> None:
    webhook_id = await created(page_client)
    [failed] = await ended(page_client, webhook_id, DeliveryStatus.FAILED)
    here = f"{LIST}/{webhook_id}/deliveries/{failed}"
    await page_client.get(here)
    token = page_client.token()
    assert await page_client.done(f"{here}/retry") == f"{here}?note=retried"
    [delivery] = await page_client.harness.deliveries()
    assert (delivery.status, delivery.budget) == (DeliveryStatus.PENDING, 2)
    again = await page_client.post(f"{here}/retry", _token=token)
    assert again.status_code == 409


async def test_a_bulk_retry_counts_before_it_begins(page_client: PageClient) -> None:
    webhook_id = await created(page_client)
    await ended(page_client, webhook_id, DeliveryStatus.FAILED, DeliveryStatus.DELIVERED)
    here, since = f"{LIST}/{webhook_id}/retries", "2026-01-01T00:00"
    await page_client.get(f"{here}/new")
    counted = await page_client.post(f"{here}/new", since=since, statuses=["failed"])
    assert "<strong>1</strong> delivery would be retried" in counted.text
    assert (await page_client.harness.dump())["bulk_retries"] == []
    where = await page_client.done(f"{here}/new", since=since, statuses=["failed"], begin="yes")
    [job] = (await page_client.harness.dump())["bulk_retries"]
    assert where == f"{here}/{job.id}"
    assert "of 1 retried" in (await page_client.get(where)).text
    assert await page_client.done(f"{where}/cancel") == f"{where}?note=retries-cancelled"


async def test_rows_come_as_events_until_the_session_ends(page_client: PageClient) -> None:
    webhook_id = await created(page_client)
    [failed] = await ended(page_client, webhook_id, DeliveryStatus.FAILED)
    await page_client.get("/settings/deliveries")
    token = page_client.token()

    async def watch() -> str:
        return (await page_client.client.get("/settings/deliveries/live")).text

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        watching = group.create_task(watch())
        while not page_client.harness.clock.jump():
            await asyncio.wait([watching], timeout=0.01)
        await page_client.done("/sign-out", _token=token)
        while not watching.done():
            page_client.harness.clock.jump()
            await asyncio.wait([watching], timeout=0.01)
    [message] = re.findall(r"event: row\ndata: (.+)\n", watching.result())
    sent = json.loads(message)
    assert sent["id"] == str(failed)
    assert f'id="row-{failed}"' in sent["html"]


async def test_a_finished_bulk_retry_offers_what_comes_next(page_client: PageClient) -> None:
    webhook_id = await created(page_client)
    await ended(page_client, webhook_id, DeliveryStatus.FAILED)
    here, harness = f"{LIST}/{webhook_id}/retries", page_client.harness
    await page_client.get(f"{here}/new")
    where = await page_client.done(
        f"{here}/new", since="2026-01-01T00:00", statuses=["failed"], begin="yes"
    )
    fragment = {"headers": {"hx-request": "true"}}
    running = (await page_client.get(where, **fragment)).text
    assert "Cancel the rest" in running
    [row] = (await harness.dump())["bulk_retries"]
    job = await harness.see(harness.service.redeliver.bulk, harness.owner, webhook_id, row.id)
    finished = replace(job, state=BulkRetryState.FINISHED, finished_at=harness.clock.now())
    await harness.do(lambda transaction: transaction.bulk_retries.save(finished))
    for page in (
        (await page_client.get(where)).text,
        (await page_client.get(where, **fragment)).text,
    ):
        assert "Cancel the rest" not in page
        assert f'href="{LIST}/{webhook_id}/deliveries?status=failed"' in page
        assert f'href="{here}/new"' in page


async def test_one_account_leaves_live_rows_to_others(
    page_client: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_rows, "MOST_OF_ACCOUNT", 1)
    live = "/settings/deliveries/live"
    await page_client.get("/settings/deliveries")
    token = page_client.token()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        first = group.create_task(page_client.client.get(live))
        while not page_client.harness.clock.jump():
            await asyncio.wait([first], timeout=0.01)
        assert (await page_client.client.get(live)).status_code == 503
        await page_client.done("/sign-out", _token=token)
        while not first.done():
            page_client.harness.clock.jump()
            await asyncio.wait([first], timeout=0.01)
    assert first.result().status_code == 200
