"""The filters of the audit trail and its export, without JavaScript."""

import csv
import io
import json
import re
from dataclasses import replace
from html import unescape

import pytest

from cuepost.application import search_audit
from cuepost.domain.access import Role
from cuepost.domain.audit import Action
from cuepost.interfaces.web import audit
from cuepost.interfaces.web.audit_export import COLUMNS, CUT
from tests.application.harness import Harness
from tests.interfaces.web.endpoints import URL, create
from tests.interfaces.web.page_client import PageClient, member_of
from tests.interfaces.web.test_audit_page import AUDIT, entries
from tests.interfaces.web.test_filters_and_search import chips, presets
from tests.support.records import Records

EXPORT = f"{AUDIT}/export"
ACTIONS = re.compile(r'<td data-label="What" title="([^"]+)">')
OPTION = re.compile(r'<option value="([^"]+)" (selected)?>([^<]+)</option>')


async def shown(page_client: PageClient, path: str, **query: str) -> list[str]:
    return ACTIONS.findall((await page_client.get(path, params=query or None)).text)


def options(page: str, name: str) -> dict[str, tuple[str, bool]]:
    inside = page.partition(f'<select name="{name}">')[2].partition("</select>")[0]
    found = OPTION.findall(inside)
    return {value: (unescape(label), bool(selected)) for value, selected, label in found}


async def add_entries(harness: Harness, count: int = 1, **changed: object) -> None:
    records = Records(harness.clock, harness.ids)
    for _ in range(count):
        entry = records.audit_entry(harness.account.id, **changed)
        await harness.do(lambda transaction, entry=entry: transaction.audit.add(entry))  # type: ignore[misc]  # bound at once


async def test_presets_choose_a_group_and_a_time(page_client: PageClient) -> None:
    await create(page_client)
    page_client.harness.clock.advance(hours=2)
    await create(page_client, description="Later")
    page = (await page_client.get(AUDIT)).text
    assert list(presets(page)) == [
        *("Last hour", "Last 24 hours", "Last 7 days"),
        *("Endpoints", "API keys", "Members", "Sign-in"),
    ]
    path, is_set = presets(page)["Endpoints"]
    assert (path, is_set) == (f"{AUDIT}?action=webhook", False)
    assert await shown(page_client, path) == ["webhook.created"] * 2
    page = (await page_client.get(path)).text
    both = presets(page)["Last hour"][0]
    assert await shown(page_client, both) == ["webhook.created"]
    page = (await page_client.get(both)).text
    assert chips(page) == {
        "Last hour": f"{AUDIT}?action=webhook",
        "Action: webhook": f"{AUDIT}?range=1h",
    }
    assert presets(page)["Endpoints"] == (f"{AUDIT}?range=1h", True)


async def test_the_form_has_every_action_and_the_actors_that_there_are(
    page_client: PageClient,
) -> None:
    member = await member_of(page_client, Role.VIEWER, "ada@example.com")
    await add_entries(page_client.harness, actor="user:gone", actor_name="eve@example.com")
    page = (await page_client.get(AUDIT, params={"action": "key.created"})).text
    found = options(page, "action")
    assert set(Action) < set(found)
    assert found["key.created"] == ("key.created", True)
    assert found["key"] == ("all of key", False)
    actors = {value: name for value, (name, _) in options(page, "actor").items()}
    assert actors["user"] == "Any member"
    assert actors[f"user:{member.id}"] == "ada@example.com"
    # A member who was removed is offered where an entry names her.
    page = (await page_client.get(AUDIT)).text
    assert options(page, "actor")["user:gone"] == ("eve@example.com", False)


async def test_entries_of_one_actor(page_client: PageClient) -> None:
    harness = page_client.harness
    key = await harness.do(
        harness.service.keys.create,
        harness.owner,
        name="CI",
        scopes=harness.owner.scopes,
        expires_at=None,
    )
    by_key = replace(harness.owner, actor=f"key:{key.key.id}", name="CI")
    await harness.do(harness.service.webhooks.create, by_key, URL, [], "")
    for actor in (f"key:{key.key.id}", f" key:{key.key.id} "):
        assert await shown(page_client, AUDIT, actor=actor) == ["webhook.created"]
    page = (await page_client.get(AUDIT, params={"actor": f"key:{key.key.id}"})).text
    assert chips(page) == {"By: The API key CI": AUDIT}
    assert options(page, "actor")[f"key:{key.key.id}"] == ("The API key CI", True)
    # One that is not known is shown as it was given.
    page = (await page_client.get(AUDIT, params={"actor": "user:<b>"})).text
    assert chips(page) == {"By: user:<b>": AUDIT}
    assert "No entries match these filters" in page


@pytest.mark.parametrize(
    "query",
    [
        {"action": "webhook."},
        {"actor": "a\x00b"},
        {"actor": "x" * 301},
        {"range": "9y"},
        {"since": "yesterday"},
        {"before": "nonsense"},
    ],
)
async def test_an_invalid_filter_is_ignored(page_client: PageClient, query: dict[str, str]) -> None:
    await create(page_client)
    answer = await page_client.get(AUDIT, params=query)
    assert answer.status_code == 200
    assert chips(answer.text) == {}
    assert "webhook.created" in ACTIONS.findall(answer.text)


async def test_pages_keep_the_filters(
    page_client: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "ROWS", 2)
    await add_entries(page_client.harness, 3, action=Action.WEBHOOK_CREATED)
    page = (await page_client.get(f"{AUDIT}?action=webhook")).text
    [older] = re.findall(r'<a href="([^"]+)"[^>]*>Older entries</a>', page)
    assert older.startswith(f"{AUDIT}?action=webhook&amp;before=")
    assert await shown(page_client, unescape(older)) == ["webhook.created"]


async def test_where_none_of_the_newest_matches_older_ones_are_searched(
    page_client: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_entries(page_client.harness, 1, action=Action.LISTENER_CREATED)
    await add_entries(page_client.harness, 3, action=Action.WEBHOOK_CREATED)
    monkeypatch.setattr(search_audit, "MOST_EXAMINED", 3)
    page = (await page_client.get(f"{AUDIT}?action=listener")).text
    assert "No matches yet" in page
    [older] = re.findall(r'<a href="([^"]+)">Search older entries</a>', page)
    assert await shown(page_client, unescape(older)) == ["listener.created"]


async def test_the_export_is_csv_of_what_is_filtered(page_client: PageClient) -> None:
    await create(page_client, description="Production")
    [link] = re.findall(
        r'<a href="([^"]+)"[^>]*>Export as CSV</a>',
        (await page_client.get(f"{AUDIT}?action=webhook")).text,
    )
    answer = await page_client.get(unescape(link))
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="audit-trail.csv"'
    assert answer.headers["cache-control"] == "no-store"
    head, *rows = csv.reader(io.StringIO(answer.text))
    assert tuple(head) == COLUMNS
    [row] = [dict(zip(head, row, strict=True)) for row in rows]
    [entry] = [each for each in await page_client.harness.audit() if "webhook" in each.action]
    assert (row["id"], row["action"], row["actor"]) == (str(entry.id), entry.action, entry.actor)
    assert json.loads(row["details"]) == {"url": URL}


async def test_the_export_as_json_lines_is_what_rest_answers(page_client: PageClient) -> None:
    await create(page_client)
    answer = await page_client.get(f"{EXPORT}?format=jsonl")
    assert answer.headers["content-disposition"].endswith('"audit-trail.jsonl"')
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["id"] for line in lines] == [
        str(each.id) for each in await page_client.harness.audit()
    ]
    assert all(tuple(line) == COLUMNS for line in lines)


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
async def test_no_cell_of_the_export_is_a_formula(page_client: PageClient, first: str) -> None:
    evil = f"{first}cmd|'/c calc'!A1"
    await add_entries(
        page_client.harness,
        action=Action.KEY_CREATED,
        actor="key:1",
        actor_name=evil,
        address=None,
        details={},
    )
    text = (await page_client.get(f"{EXPORT}?format=csv&action=key")).text
    [head, row] = csv.reader(io.StringIO(text, newline=""))
    shown = dict(zip(head, row, strict=True))
    assert (shown["actorName"], shown["address"], shown["details"]) == (f"'{evil}", "", "")


@pytest.mark.parametrize("name", ["csv", "jsonl"])
async def test_an_export_reads_small_parts_and_says_if_it_was_cut(
    page_client: PageClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    await add_entries(page_client.harness, 7, action=Action.WEBHOOK_CREATED)
    monkeypatch.setattr(search_audit, "AT_ONCE", 2)
    path = f"{EXPORT}?format={name}&action=webhook"
    whole = (await page_client.get(path)).text
    assert CUT not in whole
    assert whole.count("webhook.created") == 7
    monkeypatch.setattr(audit, "MOST_EXPORTED", 5)
    cut = (await page_client.get(path)).text
    assert cut.count("webhook.created") == 5
    last = cut.splitlines()[-1]
    assert json.loads(last) == {"cut": CUT} if name == "jsonl" else last == CUT
    assert cut.splitlines()[:5] == whole.splitlines()[:5]


async def test_an_export_in_another_format_is_not_there(page_client: PageClient) -> None:
    for path in (EXPORT, f"{EXPORT}?format=xlsx"):
        answer = await page_client.get(path)
        assert answer.status_code == 404


async def test_an_export_without_entries_has_only_the_head(page_client: PageClient) -> None:
    assert (await page_client.get(f"{EXPORT}?format=jsonl&action=portal")).text == ""
    text = (await page_client.get(f"{EXPORT}?format=csv&action=portal")).text
    assert text == ",".join(COLUMNS) + "\r\n"


async def test_a_viewer_gets_no_export(page_client: PageClient) -> None:
    await member_of(page_client, Role.VIEWER, "eve@example.com")
    viewer = await page_client.another().sign_in_as("eve@example.com")
    assert (await viewer.get(f"{EXPORT}?format=csv")).status_code == 403
    stranger = await page_client.another().get(f"{EXPORT}?format=csv")
    assert stranger.headers["location"].startswith("/sign-in?next=")


async def test_the_whole_trail_still_has_its_sentences(page_client: PageClient) -> None:
    await create(page_client, description="Production")
    assert "created the endpoint" in (await entries(page_client))["webhook.created"]
