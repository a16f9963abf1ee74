import json
from datetime import timedelta
from typing import Any

import pytest

from cuepost.domain.attempt import EXPLANATIONS, TLS_EXPLANATIONS, Outcome, Timings, TlsFault
from cuepost.domain.delivery import Delivery, DeliveryStatus, Trigger
from cuepost.domain.project import ProjectStatus
from tests.interfaces.rest.client import NOW, URL, Api, attempt_of, faults, problem


async def failed_twice(api: Api) -> Delivery:
    """A delivery with two attempts, the last of which found no one."""
    await api.harness.endpoint()
    delivery = await api.harness.complete()
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
    await api.harness.do(lambda transaction: transaction.attempts.add(made))
    await api.harness.count_attempts(delivery, 2)
    await api.harness.end(delivery, DeliveryStatus.FAILED)
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
        "deliveredAt": None,
        "lastAttempt": {
            "number": 2,
            "budget": 1,
            "startedAt": NOW,
            "durationMs": 12.5,
            "responseStatus": None,
            "outcome": "connect_error",
            "explanation": EXPLANATIONS[Outcome.CONNECT_ERROR].sentence,
            "fix": EXPLANATIONS[Outcome.CONNECT_ERROR].fix,
        },
    }
    for path in (f"/v1/webhooks/{delivery.webhook_id}/deliveries", "/v1/deliveries"):
        assert await api.done("GET", path) == {"data": [shown], "nextCursor": None}


async def test_an_expired_certificate_is_named_in_the_explanation(api: Api) -> None:
    await api.harness.endpoint()
    delivery = await api.harness.complete()
    expired = TlsFault.CERTIFICATE_EXPIRED
    made = attempt_of(delivery, outcome=Outcome.TLS_ERROR, tls_fault=expired, response_status=None)
    await api.harness.do(lambda transaction: transaction.attempts.add([made]))
    await api.harness.count_attempts(delivery, 1)
    await api.harness.end(delivery, DeliveryStatus.FAILED)
    path = f"/v1/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"
    shown = await api.done("GET", path)
    said = TLS_EXPLANATIONS[expired]
    for attempt in (*shown["attempts"], shown["lastAttempt"]):
        assert attempt["outcome"] == "tls_error"
        assert (attempt["explanation"], attempt["fix"]) == (said.sentence, said.fix)
        assert "tlsFault" not in attempt


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
        "url": URL,
        "trigger": "automatic",
        "startedAt": NOW,
        "durationMs": 12.5,
        "timings": {"dnsMs": 1.0, "connectMs": 2.0, "tlsMs": 3.0, "firstByteMs": 4.0},
        "signedWith": ["whsec_…zabc"],
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
        "fix": EXPLANATIONS[Outcome.HTTP_ERROR].fix,
    }
    assert second["timings"] == dict.fromkeys(("dnsMs", "connectMs", "tlsMs", "firstByteMs"), None)
    assert (second["trigger"], second["responseStatus"]) == ("manual", None)


async def shown_with(api: Api, *changed: dict[str, Any], counted: int) -> Any:
    """A delivery with these attempts, as it is shown."""
    await api.harness.endpoint()
    delivery = await api.harness.complete()
    made = [attempt_of(delivery, **each) for each in changed]
    await api.harness.do(lambda transaction: transaction.attempts.add(made))
    await api.harness.count_attempts(delivery, counted)
    path = f"/v1/webhooks/{delivery.webhook_id}/deliveries"
    shown = await api.done("GET", f"{path}/{delivery.id}")
    [listed] = (await api.done("GET", path))["data"]
    assert listed == {name: value for name, value in shown.items() if name in listed}
    return shown


LOST: dict[str, Any] = {
    "budget": 0,
    "signed_with": (),
    "request_headers": (),
    "response_status": None,
    "response_headers": (),
    "response_body": b"",
    "outcome": Outcome.INTERRUPTED,
}


async def test_durations_have_at_most_three_decimals(api: Api) -> None:
    timings = Timings(0.1234567890123, 1.00049, None, 12.9999)
    shown = await shown_with(
        api, {"duration_ms": 15.123456789012345, "timings": timings}, counted=1
    )
    [attempt] = shown["attempts"]
    assert attempt["durationMs"] == shown["lastAttempt"]["durationMs"] == 15.123
    assert attempt["timings"] == {
        "dnsMs": 0.123,
        "connectMs": 1.0,
        "tlsMs": None,
        "firstByteMs": 13.0,
    }


async def test_an_attempt_from_before_urls_were_kept_has_none(api: Api) -> None:
    shown = await shown_with(api, {"url": None}, counted=1)
    assert [each["url"] for each in shown["attempts"]] == [None]


async def test_interrupted_and_superseded_attempts_stand_where_they_began_and_do_not_count(
    api: Api,
) -> None:
    def after(seconds: int) -> dict[str, Any]:
        return {"started_at": api.harness.clock.now() + timedelta(seconds=seconds)}

    superseded = LOST | {"number": 2, "outcome": Outcome.SUPERSEDED, "response_status": 500}
    shown = await shown_with(
        api, superseded | after(3), LOST | after(1), {"number": 2} | after(2), {}, counted=2
    )
    assert [(each["outcome"], each["budget"], each["number"]) for each in shown["attempts"]] == [
        ("http_error", 1, 1),
        ("interrupted", 0, 1),
        ("http_error", 1, 2),
        ("superseded", 0, 2),
    ]
    last = shown["lastAttempt"]
    assert (last["outcome"], last["number"], shown["attemptCount"]) == ("http_error", 2, 2)


async def test_the_last_attempt_is_one_that_does_not_count_only_where_there_is_no_other(
    api: Api,
) -> None:
    shown = await shown_with(api, LOST, counted=0)
    last, said = shown["lastAttempt"], EXPLANATIONS[Outcome.INTERRUPTED]
    assert (last["outcome"], last["budget"]) == ("interrupted", 0)
    assert (last["explanation"], last["fix"]) == (said.sentence, said.fix)
    assert shown["attemptCount"] == 0


@pytest.mark.parametrize("value", ["1", "yes", "True", ""])
async def test_whether_to_include_what_was_delivered_is_true_or_false(
    sqlite_api: Api, value: str
) -> None:
    answer = await sqlite_api.call("GET", "/v1/deliveries", params={"includeDelivered": value})
    assert [field for field, _ in faults(answer)] == ["includeDelivered"]


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
    await api.harness.endpoint()
    delivery = await api.harness.complete()
    made = attempt_of(delivery, response_body=body, response_truncated=truncated)
    await api.harness.do(lambda transaction: transaction.attempts.add([made]))
    path = f"/v1/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"
    [attempt] = (await api.done("GET", path))["attempts"]
    assert attempt["responseBodyEncoding"] == encoding
    assert attempt["responseBody"] == shown
    assert attempt["responseTruncated"] is truncated


async def test_the_event_in_a_delivery_is_its_stored_body_byte_for_byte(api: Api) -> None:
    await api.harness.endpoint("project.failed")
    project = await api.harness.project(ProjectStatus.PROCESSING)
    answer = await api.report(
        {
            "reportId": "r1",
            "projectId": str(project.id),
            "status": "failed",
            "error": {"code": "größe", "message": 'a "quoted" \\ reason 🎬'},
        }
    )
    [stored] = await api.harness.events()
    [delivery] = await api.harness.deliveries()
    path = f"/v1/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"
    shown = await api.call("GET", path)
    assert stored.body in shown.content
    event = await api.call("GET", f"/v1/events/{answer['results'][0]['eventId']}")
    assert stored.body in event.content
    assert json.loads(stored.body) == event.json()["body"]


async def test_deliveries_are_chosen_by_each_filter(api: Api) -> None:
    with_secret = await api.harness.endpoint("project.completed", "project.failed")
    first = await api.harness.complete()
    await api.harness.end(first, DeliveryStatus.DELIVERED)
    api.harness.clock.advance(60)
    project = await api.harness.project(ProjectStatus.PROCESSING)
    await api.harness.report(api.harness.milestone(project, "failed"))
    second = next(each for each in await api.harness.deliveries() if each.id != first.id)
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
    paths = ("/v1/deliveries", f"/v1/webhooks/{with_secret.view.endpoint.id}/deliveries")
    for path in paths:
        for chosen, expected in choices:
            found = await api.done("GET", path, params=chosen)
            assert [each["id"] for each in found["data"]] == [str(e.id) for e in expected], chosen


async def test_a_delivery_of_another_endpoint_is_not_found_under_this_one(api: Api) -> None:
    one, other = await api.harness.endpoint(), await api.harness.endpoint("project.ready")
    delivery = await api.harness.complete()
    assert delivery.webhook_id == one.view.endpoint.id
    path = f"/v1/webhooks/{other.view.endpoint.id}/deliveries/{delivery.id}"
    assert problem(await api.call("GET", path)) == (404, "not_found")
    assert problem(await api.call("POST", f"{path}/retry")) == (404, "not_found")


@pytest.mark.parametrize(
    "identifier",
    [
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "ee9008f2-a4aa-446b-a66d-a3348075e910",
    ],
)
async def test_an_id_of_any_kind_may_be_asked_for(api: Api, identifier: str) -> None:
    endpoint = (await api.harness.endpoint()).view.endpoint
    await api.harness.complete()
    for path in ("/v1/deliveries", f"/v1/webhooks/{endpoint.id}/deliveries"):
        for status in (*DeliveryStatus, None):
            query = {"eventId": identifier, "projectId": identifier} | (
                {"status": status} if status else {}
            )
            assert (await api.done("GET", path, params=query))["data"] == []
    found = await api.done("GET", "/v1/events", params={"projectId": identifier})
    assert found["data"] == []
    for path in (f"/v1/events/{identifier}", f"/v1/projects/{identifier}"):
        assert problem(await api.call("GET", path)) == (404, "not_found")
    report = {"reportId": "r", "projectId": identifier, "status": "ready"}
    assert (await api.report(report))["results"][0]["reason"] == "project_not_found"
