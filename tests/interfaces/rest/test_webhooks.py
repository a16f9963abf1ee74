from dataclasses import replace

import pytest

from tests.application.harness import BASE_URL
from tests.interfaces.rest.client import NOW, RULES, URL, Api, faults, opened, problem

HEALTH = {"state": "unknown", "since": NOW, "lastDeliveredAt": None, "failing": 0, "failed": 0}


async def created(api: Api) -> dict[str, object]:
    made: dict[str, object] = await api.done("POST", "/v1/webhooks", {"url": URL})
    return made


async def test_a_created_endpoint_is_answered_whole_with_its_secret_and_address(api: Api) -> None:
    body = {"url": URL, "events": ["project.ready", "project.failed"], "description": "Mine"}
    answer = await api.call("POST", "/v1/webhooks", body)
    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{BASE_URL}/v1/webhooks/{made['id']}"
    assert answer.headers["cache-control"] == "no-store"
    assert made == {
        "id": made["id"],
        "url": URL,
        "events": ["project.failed", "project.ready"],
        "description": "Mine",
        "enabled": True,
        "secret": made["secret"],
        "secretHint": "whsec_…" + made["secret"].rstrip("=")[-4:],
        "previousSecretExpiresAt": None,
        "createdAt": NOW,
        "updatedAt": NOW,
        "health": HEALTH,
    }
    del made["secret"]
    assert await api.done("GET", f"/v1/webhooks/{made['id']}") == made
    assert await api.done("GET", "/v1/webhooks") == {"data": [made], "nextCursor": None}


@pytest.mark.parametrize("chosen", [{}, {"events": []}, {"events": None, "description": None}])
async def test_without_a_choice_an_endpoint_gets_the_default_events(
    api: Api, chosen: dict[str, object]
) -> None:
    made = await api.done("POST", "/v1/webhooks", {"url": URL, **chosen})
    assert made["events"] == ["project.completed", "project.failed"]
    assert made["description"] == ""


async def test_each_wrong_event_type_is_named(api: Api) -> None:
    body = {"url": URL, "events": ["project.ready", "webhook.test", "project.gone"]}
    answer = await api.call("POST", "/v1/webhooks", body)
    assert faults(answer) == [
        ("events[1]", "event_type_not_subscribable"),
        ("events[2]", "unknown_event_type"),
    ]


async def test_the_endpoints_of_an_account_are_limited(api: Api) -> None:
    few = await opened(api.harness, replace(RULES, endpoint_limit=1))
    await created(few)
    answer = await few.call("POST", "/v1/webhooks", {"url": URL})
    assert problem(answer) == (409, "endpoint_limit_reached")


async def test_a_change_touches_what_it_names_and_nothing_else(api: Api) -> None:
    made = await created(api)
    del made["secret"]
    api.harness.clock.advance(1)
    changed = {"url": "https://other.example.com/", "description": "Other"}
    answer = await api.done("PATCH", f"/v1/webhooks/{made['id']}", changed)
    assert answer == made | changed | {"updatedAt": "2026-01-02T03:04:06.678Z"}
    assert await api.done("PATCH", f"/v1/webhooks/{made['id']}", {}) == answer
    assert await api.done("GET", f"/v1/webhooks/{made['id']}") == answer


async def test_an_emptied_choice_of_events_means_the_default_ones(api: Api) -> None:
    made = await api.done("POST", "/v1/webhooks", {"url": URL, "events": ["project.ready"]})
    changed = await api.done("PATCH", f"/v1/webhooks/{made['id']}", {"events": []})
    assert changed["events"] == ["project.completed", "project.failed"]


@pytest.mark.parametrize("field", ["url", "events", "description", "enabled"])
async def test_a_change_to_null_is_refused(api: Api, field: str) -> None:
    made = await created(api)
    answer = await api.call("PATCH", f"/v1/webhooks/{made['id']}", {field: None})
    assert faults(answer) == [(field, "wrong_type")]


async def test_a_disabled_endpoint_says_so_and_cancels_what_waits(api: Api) -> None:
    made = await created(api)
    path = f"/v1/webhooks/{made['id']}"
    delivery = await api.done("POST", f"{path}/test")
    disabled = await api.done("PATCH", path, {"enabled": False})
    assert disabled["health"] == HEALTH | {"state": "disabled"}
    stopped = await api.done("GET", f"{path}/deliveries/{delivery['id']}")
    assert (stopped["status"], stopped["reason"]) == ("cancelled", "endpoint_disabled")
    assert problem(await api.call("POST", f"{path}/test")) == (409, "endpoint_disabled")


async def test_a_deleted_endpoint_is_gone_with_its_history(api: Api) -> None:
    made = await created(api)
    path = f"/v1/webhooks/{made['id']}"
    delivery = await api.done("POST", f"{path}/test")
    answer = await api.call("DELETE", path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert "content-type" not in answer.headers
    for gone in (path, f"{path}/deliveries", f"{path}/deliveries/{delivery['id']}"):
        assert problem(await api.call("GET", gone)) == (404, "not_found")
    assert problem(await api.call("DELETE", path)) == (404, "not_found")
    assert (await api.done("GET", "/v1/deliveries"))["data"] == []


async def test_rotation_gives_a_new_secret_and_waits_for_the_overlap_to_end(api: Api) -> None:
    made = await created(api)
    path = f"/v1/webhooks/{made['id']}"
    rotated = await api.done("POST", f"{path}/rotate-secret")
    expiry = "2026-01-03T03:04:05.678Z"
    assert rotated["secret"] != made["secret"]
    assert rotated == {
        "secret": rotated["secret"],
        "secretHint": "whsec_…" + rotated["secret"].rstrip("=")[-4:],
        "previousSecretExpiresAt": expiry,
    }
    shown = await api.done("GET", path)
    assert shown["secretHint"] == rotated["secretHint"]
    assert shown["previousSecretExpiresAt"] == expiry
    again = await api.call("POST", f"{path}/rotate-secret")
    assert problem(again) == (409, "rotation_overlap_active")
    assert again.json()["availableAt"] == expiry


async def test_an_ended_overlap_allows_the_next_rotation_at_once(api: Api) -> None:
    made = await created(api)
    path = f"/v1/webhooks/{made['id']}"
    rotated = await api.done("POST", f"{path}/rotate-secret")
    ended = await api.done("POST", f"{path}/end-overlap")
    del made["secret"]
    assert ended == made | {"secretHint": rotated["secretHint"]}
    await api.done("POST", f"{path}/rotate-secret")


async def test_a_test_event_is_taken_on_as_an_ordinary_delivery(api: Api) -> None:
    made = await created(api)
    answer = await api.call("POST", f"/v1/webhooks/{made['id']}/test")
    delivery = answer.json()
    assert answer.status_code == 202
    assert delivery == {
        "id": delivery["id"],
        "webhookId": made["id"],
        "eventId": delivery["eventId"],
        "eventType": "webhook.test",
        "projectId": None,
        "status": "pending",
        "reason": None,
        "attemptCount": 0,
        "budget": 1,
        "nextAttemptAt": NOW,
        "createdAt": NOW,
        "finishedAt": None,
        "deliveredAt": None,
        "lastAttempt": None,
    }
    path = f"/v1/webhooks/{made['id']}/deliveries/{delivery['id']}"
    assert answer.headers["location"] == BASE_URL + path
    assert await api.done("GET", path) == delivery | {
        "event": {
            "id": delivery["eventId"],
            "type": "webhook.test",
            "createdAt": NOW,
            "data": {
                "webhookId": made["id"],
                "message": "This is a test event from cuepost. Handle it apart from project"
                " events.",
            },
        },
        "attempts": [],
    }


async def test_the_url_is_judged_at_every_change(api: Api) -> None:
    made = await created(api)
    answer = await api.call("PATCH", f"/v1/webhooks/{made['id']}", {"url": "https://127.0.0.1/"})
    assert faults(answer) == [("url", "url_address_not_public")]
