"""Endpoints as someone makes them in the pages."""

import re
from html import unescape
from typing import Any
from uuid import UUID

from cuepost.ports.records import Page
from tests.interfaces.web.page_client import PageClient

SECRET = re.compile(r'id="secret"[^>]*>(whsec_[^<]+)<')
URL = "https://hooks.example.com/cue"
LIST = "/settings/webhooks"


async def endpoints_of(page_client: PageClient) -> list[Any]:
    harness = page_client.harness
    return await harness.see(harness.service.webhooks.page, harness.owner, Page(10))


async def create(page_client: PageClient, **fields: Any) -> str:
    await page_client.get(f"{LIST}/new")
    answer = await page_client.post(f"{LIST}/new", once=page_client.once(), url=URL, **fields)
    assert answer.status_code == 200, answer.text
    found = SECRET.search(answer.text)
    assert found is not None
    return unescape(found[1])


async def created(page_client: PageClient) -> UUID:
    await create(page_client)
    webhook_id: UUID = (await endpoints_of(page_client))[0].endpoint.id
    return webhook_id
