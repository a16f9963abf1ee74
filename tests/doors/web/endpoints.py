"""Endpoints as somebody makes them in the pages."""

import re
from html import unescape
from typing import Any
from uuid import UUID

from cuepost.ports.records import Page
from tests.doors.web.guest import Guest

SECRET = re.compile(r'id="secret"[^>]*>(whsec_[^<]+)<')
URL = "https://hooks.example.com/cue"
LIST = "/settings/webhooks"


async def endpoints_of(guest: Guest) -> list[Any]:
    world = guest.world
    return await world.see(world.service.webhooks.page, world.owner, Page(10))


async def create(guest: Guest, **fields: Any) -> str:
    await guest.get(f"{LIST}/new")
    answer = await guest.post(f"{LIST}/new", once=guest.once(), url=URL, **fields)
    assert answer.status_code == 200, answer.text
    found = SECRET.search(answer.text)
    assert found is not None
    return unescape(found[1])


async def created(guest: Guest) -> UUID:
    await create(guest)
    webhook_id: UUID = (await endpoints_of(guest))[0].endpoint.id
    return webhook_id
