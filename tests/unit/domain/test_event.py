"""The frozen bytes of an event: what is stored is what is signed is what is sent."""

import json
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.domain.event import Event, SilenceReason, event_body
from cuepost.testing import START

EVENT_ID = UUID("0198c0de-7b2c-7f00-8a1b-2c3d4e5f6071")


def test_a_body_is_compact_json_with_four_keys_in_this_order() -> None:
    assert event_body(EVENT_ID, "project.ready", START, {"projectId": "p", "status": "ready"}) == (
        b'{"id":"0198c0de-7b2c-7f00-8a1b-2c3d4e5f6071","type":"project.ready",'
        b'"createdAt":"2026-01-02T03:04:05.678Z","data":{"projectId":"p","status":"ready"}}'
    )


def test_the_order_of_the_data_is_kept() -> None:
    body = event_body(EVENT_ID, "t", START, {"z": 1, "a": 2})
    assert body.endswith(b'"data":{"z":1,"a":2}}')


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Größe", '"Größe"'),
        ("字幕 🎬", '"字幕 🎬"'),
        ('say "hi"\\', '"say \\"hi\\"\\\\"'),
        ("a\nb\x00", '"a\\nb\\u0000"'),
    ],
)
def test_text_is_utf_8_and_only_escaped_where_json_needs_it(text: str, written: str) -> None:
    assert f'"message":{written}'.encode() in event_body(EVENT_ID, "t", START, {"message": text})


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_whatever_the_data_it_can_be_read_back(data: dict[str, object]) -> None:
    body = json.loads(event_body(EVENT_ID, "t", START, data))
    assert body == {
        "id": str(EVENT_ID),
        "type": "t",
        "createdAt": "2026-01-02T03:04:05.678Z",
        "data": data,
    }


@pytest.mark.parametrize("reason", SilenceReason)
def test_a_silenced_event_keeps_its_bytes_and_says_why(reason: SilenceReason) -> None:
    event = Event(
        account_id=EVENT_ID,
        id=EVENT_ID,
        type="project.ready",
        created_at=START,
        project_id=EVENT_ID,
        occurred_at=START - timedelta(seconds=1),
        body=b"{}",
    )
    assert event.silenced(reason) == replace(event, reason=reason)
