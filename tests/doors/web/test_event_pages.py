"""Events in the pages: all that happened, also what nobody was sent, with the verdicts."""

import re
from html import unescape

from tests.doors.web.endpoints import LIST, created
from tests.doors.web.guest import Guest

EVENTS = "/settings/events"


async def test_an_event_shows_its_body_and_what_became_of_it_at_each_endpoint(
    guest: Guest,
) -> None:
    webhook_id = await created(guest)
    delivery = await guest.world.complete()
    [event] = await guest.world.events()
    listed = (await guest.get(EVENTS)).text
    assert f'href="{EVENTS}/{event.id}"' in listed
    assert "pill-pending" in listed
    page = unescape((await guest.get(f"{EVENTS}/{event.id}")).text)
    assert event.body.decode() in page
    assert f'href="{LIST}/{webhook_id}/deliveries/{delivery.id}"' in page
    assert f'href="/settings/projects/{event.project_id}"' in page


async def test_an_event_that_nobody_was_sent_says_why(guest: Guest) -> None:
    await guest.world.report(guest.world.milestone(await guest.world.project()))
    [event] = await guest.world.events()
    assert "sent to nobody: not subscribed" in (await guest.get(EVENTS)).text
    page = unescape((await guest.get(f"{EVENTS}/{event.id}")).text)
    assert "no endpoint was subscribed to it when it happened" in page


async def test_events_are_filtered_in_the_address_and_paged(guest: Guest) -> None:
    world = guest.world
    await world.report(world.milestone(await world.project(), "failed"))
    await world.report(*[world.milestone(await world.project()) for _ in range(21)])
    failed, first, *_ = sorted(await world.events(), key=lambda event: event.id)

    async def shown(query: str) -> str:
        return (await guest.get(f"{EVENTS}?{query}")).text

    only_failed = await shown("type=project.failed")
    assert str(failed.id) in only_failed
    assert str(first.id) not in only_failed
    assert str(first.id) in await shown(f"project={first.project_id}")
    assert "Nothing fits these filters" in await shown("since=2030-01-01T00:00")
    newest = await shown("type=project.completed")
    assert str(first.id) not in newest
    older = re.search(r'href="([^"]+before=[^"]+)"', newest)
    assert older is not None
    assert str(first.id) in (await guest.get(unescape(older[1]))).text


async def test_without_events_the_page_says_when_one_appears(guest: Guest) -> None:
    assert "Nothing has happened yet" in (await guest.get(EVENTS)).text
