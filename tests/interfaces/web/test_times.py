"""Times in the pages, as the server writes them: relative, absolute on hover, in UTC."""

from datetime import UTC, datetime, timedelta

import pytest

from cuepost.interfaces.web.times import ago, in_field, moment, relative
from tests.interfaces.web.endpoints import LIST, created
from tests.interfaces.web.page_client import PageClient

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "now"),
        (0.9, "now"),
        (1, "1 s ago"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (3_599, "59 min ago"),
        (3_600, "1 h ago"),
        (86_399, "23 h ago"),
        (86_400, "1 d ago"),
        (40 * 86_400, "40 d ago"),
        (-1, "in 1 s"),
        (-7_300, "in 2 h"),
    ],
)
def test_a_time_is_relative_to_now_in_its_largest_unit(seconds: float, shown: str) -> None:
    assert relative(NOW - timedelta(seconds=seconds), NOW) == shown


def test_an_element_carries_the_time_for_programs_and_for_hovering() -> None:
    title = 'datetime="2026-01-02T03:04:05.000Z" title="2026-01-02 03:04:05 UTC"'
    later = NOW + timedelta(minutes=3)
    assert ago(NOW, later) == f"<time {title} data-relative>3 min ago</time>"
    assert moment(NOW) == f"<time {title}>2026-01-02 03:04:05</time>"
    assert (ago(None, NOW, "<never>"), moment(None)) == ("&lt;never&gt;", "–")


def test_fields_are_filled_in_utc() -> None:
    assert (in_field(NOW), in_field(NOW, seconds=True), in_field(None)) == (
        "2026-01-02T03:04",
        "2026-01-02T03:04:05",
        "",
    )


async def test_lists_show_relative_times_and_say_the_zone_once(page_client: PageClient) -> None:
    await created(page_client)
    await page_client.harness.complete()
    page_client.harness.clock.advance(minutes=3)
    for path in ("/settings/deliveries", "/settings/events"):
        page = (await page_client.get(path)).text
        assert "data-relative>3 min ago</time>" in page, path
        assert page.count("Times are in UTC.") == 1, path


async def test_details_show_both(page_client: PageClient) -> None:
    webhook_id = await created(page_client)
    delivery = await page_client.harness.complete()
    page_client.harness.clock.advance(minutes=3)
    page = (await page_client.get(f"{LIST}/{webhook_id}/deliveries/{delivery.id}")).text
    created_at = page.partition("<dt>Created</dt>")[2].partition("</dd>")[0]
    assert created_at == (
        f'<dd>{moment(delivery.created_at)} <span class="muted">'
        f"({ago(delivery.created_at, page_client.harness.clock.now())})</span>"
    )
