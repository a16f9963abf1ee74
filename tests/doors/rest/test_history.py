import json
from typing import Any

import pytest

from cuepost.domain.attempt import EXPLANATIONS, Outcome, Timings
from cuepost.domain.delivery import Delivery, DeliveryStatus, Trigger
from cuepost.domain.event_catalog import CATALOG
from cuepost.domain.project import ProjectStatus
from tests.doors.rest.client import NOW, Api, attempt_of, faults, problem


async def failed_twice(api: Api) -> Delivery:
    """A delivery with two attempts, the last of which found nobody."""
    await api.world.endpoint()
    delivery = await api.world.complete()
    made = [
        attempt_of(delivery),
        attempt_of(
            delivery,
            number=2,
            trigger=Trigger.MANUAL,
            timings=Timings(),
            response_status=None,
            response_headers=(),
            response_body=b"",
            outcome=Outcome.CONNECT_ERROR,
        ),
    ]
    await api.world.do(lambda transaction: transaction.attempts.add(made))
    await api.world.count_attempts(delivery, 2)
    await api.world.end(delivery, DeliveryStatus.FAILED)
    return delivery


async def test_a_listed_delivery_shows_its_last_attempt_in_short(api: Api) -> None:
    delivery = await failed_twice(api)
    shown = {
        "id": str(delivery.id),
        "webhookId": str(delivery.webhook_id),
        "eventId": str(delivery.event_id),
        "eventType": "project.completed",
        "projectId": str(delivery.project_id),
        "status": "failed",
        "reason": None,
        "attemptCount": 2,
        "budget": 1,
        "nextAttemptAt": None,
        "createdAt": NOW,
        "finishedAt": NOW,
        "lastAttempt": {
            "number": 2,
            "budget": 1,
            "startedAt": NOW,
            "durationMs": 12.5,
            "responseStatus": None,
            "outcome": "connect_error",
            "explanation": EXPLANATIONS[Outcome.CONNECT_ERROR].sentence,
            "mend": EXPLANATIONS[Outcome.CONNECT_ERROR].mend,
        },
    }
    for path in (f"/v1/webhooks/{delivery.webhook_id}/deliveries", "/v1/deliveries"):
        assert await api.done("GET", path) == {"data": [shown], "nextCursor": None}


async def test_a_delivery_is_shown_with_its_event_and_every_attempt(api: Api) -> None:
    delivery = await failed_twice(api)
    path = f"/v1/webhooks/{delivery.webhook_id}/deliveries"
    [listed] = (await api.done("GET", path))["data"]
    shown = await api.done("GET", f"{path}/{delivery.id}")
    first, second = shown.pop("attempts")
    event = shown.pop("event")
    assert shown == listed
    assert list(event) == ["id", "type", "createdAt", "data"]
    assert first == {
        "number": 1,
        "budget": 1,
        "trigger": "automatic",
        "startedAt": NOW,
        "durationMs": 12.5,
        "timings": {"dnsMs": 1.0, "connectMs": 2.0, "tlsMs": 3.0, "firstByteMs": 4.0},
        "signedWith": ["whsec_…abc="],
        "requestHeaders": [{"name": "webhook-id", "value": str(delivery.event_id)}],
        "responseStatus": 500,
        "responseHeaders": [
            {"name": "set-cookie", "value": "a=1"},
            {"name": "set-cookie", "value": "b=2"},
        ],
        "responseBody": "out of order",
        "responseBodyEncoding": "utf-8",
        "responseTruncated": False,
        "outcome": "http_error",
        "explanation": EXPLANATIONS[Outcome.HTTP_ERROR].sentence,
        "mend": EXPLANATIONS[Outcome.HTTP_ERROR].mend,
    }
    assert second["timings"] == dict.fromkeys(("dnsMs", "connectMs", "tlsMs", "firstByteMs"), None)
    assert (second["trigger"], second["responseStatus"]) == ("manual", None)


@pytest.mark.parametrize(
    ("body", "truncated", "shown", "encoding"),
    [
        (b"", False, "", "utf-8"),
        ("schön\x00".encode(), False, "schön\x00", "utf-8"),
        ("schö".encode()[:-1], True, "sch", "utf-8"),
        ("schö".encode()[:-1], False, "c2Now7Y="[:-3] + "w==", "base64"),
        (b"\xff\xfe", True, "//4=", "base64"),
    ],
)
async def test_a_response_is_shown_as_text_where_it_is_text(
    api: Api, body: bytes, truncated: bool, shown: str, encoding: str
) -> None:
    await api.world.endpoint()
    delivery = await api.world.complete()
    made = attempt_of(delivery, response_body=body, response_truncated=truncated)
    await api.world.do(lambda transaction: transaction.attempts.add([made]))
    path = f"/v1/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"
    [attempt] = (await api.done("GET", path))["attempts"]
    assert attempt["responseBodyEncoding"] == encoding
    assert attempt["responseBody"] == shown
    assert attempt["responseTruncated"] is truncated


async def test_the_event_in_a_delivery_is_its_stored_body_byte_for_byte(api: Api) -> None:
    await api.world.endpoint("project.failed")
    project = await api.world.project(ProjectStatus.PROCESSING)
    answer = await api.report(
        {
            "reportId": "r1",
            "projectId": str(project.id),
            "status": "failed",
            "error": {"code": "größe", "message": 'a "quoted" \\ reason 🎬'},
        }
    )
    [stored] = await api.world.events()
    [delivery] = await api.world.deliveries()
    path = f"/v1/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"
    shown = await api.call("GET", path)
    assert stored.body in shown.content
    event = await api.call("GET", f"/v1/events/{answer['results'][0]['eventId']}")
    assert stored.body in event.content
    assert json.loads(stored.body) == event.json()["body"]


async def test_deliveries_are_chosen_by_each_filter(api: Api) -> None:
    unveiled = await api.world.endpoint("project.completed", "project.failed")
    first = await api.world.complete()
    await api.world.end(first, DeliveryStatus.DELIVERED)
    api.world.clock.advance(60)
    project = await api.world.project(ProjectStatus.PROCESSING)
    await api.world.report(api.world.milestone(project, "failed"))
    second = next(each for each in await api.world.deliveries() if each.id != first.id)
    later = "2026-01-02T03:05:05.678Z"
    choices: list[tuple[dict[str, Any], list[Delivery]]] = [
        ({}, [second, first]),
        ({"status": "delivered"}, [first]),
        ({"status": "pending"}, [second]),
        ({"status": "retrying"}, []),
        ({"type": "project.failed"}, [second]),
        ({"projectId": str(first.project_id)}, [first]),
        ({"eventId": str(second.event_id)}, [second]),
        ({"since": later}, [second]),
        ({"until": later}, [first]),
        ({"since": "2026-01-02T04:05:05.678+01:00"}, [second]),
        ({"since": NOW, "until": later, "status": "failed"}, []),
    ]
    paths = ("/v1/deliveries", f"/v1/webhooks/{unveiled.view.endpoint.id}/deliveries")
    for path in paths:
        for chosen, expected in choices:
            found = await api.done("GET", path, params=chosen)
            assert [each["id"] for each in found["data"]] == [str(e.id) for e in expected], chosen


async def test_events_show_their_verdict_for_each_endpoint(api: Api) -> None:
    unveiled = await api.world.endpoint()
    delivery = await api.world.complete()
    occurred = "2025-12-31T23:00:00.000Z"
    quiet = await api.world.project(ProjectStatus.PROCESSING)
    await api.report(
        {
            "reportId": "quiet",
            "projectId": str(quiet.id),
            "status": "ready",
            "occurredAt": occurred,
        }
    )
    unheard, heard = (await api.done("GET", "/v1/events"))["data"]
    assert heard == {
        "id": str(delivery.event_id),
        "type": "project.completed",
        "createdAt": NOW,
        "occurredAt": NOW,
        "projectId": str(delivery.project_id),
        "reason": None,
        "body": heard["body"],
        "deliveries": [
            {
                "webhookId": str(unveiled.view.endpoint.id),
                "deliveryId": str(delivery.id),
                "status": "pending",
                "reason": None,
            }
        ],
    }
    assert unheard == {
        "id": unheard["id"],
        "type": "project.ready",
        "createdAt": NOW,
        "occurredAt": occurred,
        "projectId": str(quiet.id),
        "reason": "not_subscribed",
        "body": {
            "id": unheard["id"],
            "type": "project.ready",
            "createdAt": NOW,
            "data": {"projectId": str(quiet.id), "status": "ready", "stage": "processing"},
        },
        "deliveries": [],
    }
    assert await api.done("GET", f"/v1/events/{heard['id']}") == heard
    for chosen, expected in (
        ({"type": "project.ready"}, [unheard]),
        ({"projectId": str(delivery.project_id)}, [heard]),
        ({"since": "2026-01-02T03:04:05.679Z"}, []),
        ({"until": "2026-01-02T03:04:05.679Z"}, [unheard, heard]),
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
        "door": "rest",
        "address": "192.0.2.7",
        "subject": made["id"],
        "details": {"url": "https://hooks.example.com/"},
        "at": NOW,
    }
    assert entry["actor"].removeprefix("key:") in str(await api.world.audit())


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


async def test_a_delivery_of_another_endpoint_is_not_found_under_this_one(api: Api) -> None:
    one, other = await api.world.endpoint(), await api.world.endpoint("project.ready")
    delivery = await api.world.complete()
    assert delivery.webhook_id == one.view.endpoint.id
    path = f"/v1/webhooks/{other.view.endpoint.id}/deliveries/{delivery.id}"
    assert problem(await api.call("GET", path)) == (404, "not_found")
    assert problem(await api.call("POST", f"{path}/retry")) == (404, "not_found")
