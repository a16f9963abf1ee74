"""Events over REST, and the audit trail."""

from typing import Any

import pytest

from cuepost.application import search_audit
from cuepost.domain.delivery import Delivery
from cuepost.domain.event_catalog import CATALOG
from cuepost.domain.project import Project, ProjectStatus
from tests.interfaces.rest.client import NOW, Api, faults


async def heard(api: Api) -> Delivery:
    await api.harness.endpoint()
    return await api.harness.complete()


async def unheard(api: Api, occurred_at: str) -> Project:
    project = await api.harness.project(ProjectStatus.PROCESSING)
    report = {"reportId": "quiet", "projectId": str(project.id), "status": "ready"}
    await api.report(report | {"occurredAt": occurred_at})
    return project


async def test_an_event_shows_its_verdict_for_each_endpoint(api: Api) -> None:
    delivery = await heard(api)
    [event] = (await api.done("GET", "/v1/events"))["data"]
    assert event == {
        "id": str(delivery.event_id),
        "type": "project.completed",
        "createdAt": NOW,
        "occurredAt": NOW,
        "projectId": str(delivery.project_id),
        "reason": None,
        "body": event["body"],
        "deliveries": [
            {
                "webhookId": str(delivery.webhook_id),
                "deliveryId": str(delivery.id),
                "status": "pending",
                "reason": None,
            }
        ],
    }
    assert await api.done("GET", f"/v1/events/{event['id']}") == event


async def test_an_event_without_a_subscriber_is_shown_with_the_reason(api: Api) -> None:
    occurred = "2025-12-31T23:00:00.000Z"
    project = await unheard(api, occurred)
    [event] = (await api.done("GET", "/v1/events"))["data"]
    assert event == {
        "id": event["id"],
        "type": "project.ready",
        "createdAt": NOW,
        "occurredAt": occurred,
        "projectId": str(project.id),
        "reason": "not_subscribed",
        "body": {
            "id": event["id"],
            "type": "project.ready",
            "createdAt": NOW,
            "data": {"projectId": str(project.id), "status": "ready", "stage": "processing"},
        },
        "deliveries": [],
    }


async def test_events_are_chosen_by_each_filter(api: Api) -> None:
    delivery = await heard(api)
    await unheard(api, NOW)
    quiet, loud = (await api.done("GET", "/v1/events"))["data"]
    for chosen, expected in (
        ({"type": "project.ready"}, [quiet]),
        ({"projectId": str(delivery.project_id)}, [loud]),
        ({"since": "2026-01-02T03:04:05.679Z"}, []),
        ({"until": "2026-01-02T03:04:05.679Z"}, [quiet, loud]),
    ):
        assert (await api.done("GET", "/v1/events", params=chosen))["data"] == expected


async def test_the_catalogue_of_event_types_is_shown_whole(api: Api) -> None:
    found = await api.done("GET", "/v1/event-types")
    assert found == {
        "data": [
            {
                "name": entry.name,
                "meaning": entry.meaning,
                "default": entry.subscribed_by_default,
                "subscribable": entry.subscribable,
                "schema": entry.schema(),
                "sample": entry.sample(),
            }
            for entry in CATALOG
        ],
        "nextCursor": None,
    }


async def test_the_audit_trail_says_who_did_what_from_where(api: Api) -> None:
    made = await api.done("POST", "/v1/webhooks", {"url": "https://hooks.example.com/"})
    entry, *_ = (await api.done("GET", "/v1/audit"))["data"]
    assert entry == {
        "id": entry["id"],
        "action": "webhook.created",
        "actor": entry["actor"],
        "actorName": "test",
        "interface": "rest",
        "address": "192.0.2.7",
        "subject": made["id"],
        "details": {"url": "https://hooks.example.com/"},
        "at": NOW,
    }
    assert entry["actor"].removeprefix("key:") in str(await api.harness.audit())


async def test_the_audit_trail_is_filtered_by_action_actor_and_time(api: Api) -> None:
    created = await api.done("POST", "/v1/webhooks", {"url": "https://hooks.example.com/"})
    api.harness.clock.advance(60)
    await api.done("POST", f"/v1/webhooks/{created['id']}/test")
    whole = (await api.done("GET", "/v1/audit"))["data"]
    sent, made = whole[:2]
    for query, expected in (
        ({"action": "webhook.created"}, [made]),
        ({"action": "webhook"}, [sent, made]),
        ({"action": "listener"}, []),
        ({"actor": made["actor"]}, [sent, made]),
        ({"actor": "key", "action": "webhook.test_sent"}, [sent]),
        ({"actor": "user"}, []),
        ({"actor": "key:"}, []),
        ({"since": sent["at"]}, [sent]),
        ({"until": sent["at"], "action": "webhook"}, [made]),
    ):
        found = await api.done("GET", "/v1/audit", params=query)
        assert found == {"data": expected, "nextCursor": None}, query


async def test_what_no_audit_filter_can_be_is_refused(api: Api) -> None:
    for name, value in (
        ("action", "webhook."),
        ("action", "webhook.painted"),
        ("actor", ""),
        ("actor", "a\x00b"),
        ("actor", "x" * 301),
        ("since", "yesterday"),
    ):
        answer = await api.call("GET", "/v1/audit", params={name: value})
        assert answer.status_code == 422, (name, value)
        assert answer.json()["errors"][0]["field"] == name


async def test_a_filtered_page_of_the_audit_trail_may_be_short(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await api.done("POST", "/v1/webhooks", {"url": "https://hooks.example.com/"})
    for _ in range(4):
        api.harness.clock.advance(1)
        await api.done("POST", f"/v1/webhooks/{made['id']}/test")
    monkeypatch.setattr(search_audit, "MOST_EXAMINED", 2)
    query, seen = {"action": "webhook.created"}, list[Any]()
    for _ in range(3):
        page = await api.done("GET", "/v1/audit", params=query)
        seen.append([each["subject"] for each in page["data"]])
        if page["nextCursor"] is not None:
            query["cursor"] = page["nextCursor"]
    assert seen == [[], [], [made["id"]]]


async def test_the_audit_trail_is_open_while_webhooks_are_closed(api: Api) -> None:
    stranger = await api.stranger(webhooks_enabled=False)
    actions = [
        each["action"] for each in (await api.done("GET", "/v1/audit", key=stranger))["data"]
    ]
    assert actions == ["key.created", "account.created"]


async def test_unknown_event_types_cannot_be_chosen(api: Api) -> None:
    for path in ("/v1/deliveries", "/v1/events"):
        answer = await api.call("GET", path, params={"type": "project.gone"})
        assert faults(answer) == [("type", "unknown_event_type")]
