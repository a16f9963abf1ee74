"""The envelope of an event, read from what was verified."""

from datetime import UTC, datetime

import pytest

from cuepost_receiver import Event, Reason, VerificationFailed, Verified
from packages.receiver.tests.signing import (
    EVENT_ID,
    NOW,
    PROJECT_ID,
    event_body,
)


def test_an_event_is_read_from_what_was_verified() -> None:
    event = Verified(EVENT_ID, NOW, event_body()).event()
    created = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    assert (event.id, event.type, event.created_at) == (EVENT_ID, "project.failed", created)
    assert (event.project_id, event.status, event.stage) == (PROJECT_ID, "failed", "export")
    assert event.error == {"code": "render_timeout", "message": "Größe <1> & 100 %"}
    assert (event.result_url, event.is_test) == (None, False)


def test_data_of_another_form_is_no_trouble() -> None:
    odd = Event("a", "webhook.test", datetime.now(UTC), {"projectId": 7, "error": "text"})
    assert (odd.project_id, odd.error, odd.is_test) == (None, None, True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"null",
        b"[" * 100_000,
        b'{"id":1,"type":"a","createdAt":"2026-01-02T03:04:05.678Z","data":{}}',
        b'{"id":"a","type":"a","createdAt":"2026-01-02","data":{}}',
        b'{"id":"a","type":"a","createdAt":"2026-13-02T03:04:05.678Z","data":{}}',
        b'{"id":"a","type":"a","createdAt":"2026-01-02T03:04:05.678Z","data":[]}',
        b'{"id":"a","type":"a","createdAt":"2026-01-02T03:04:05.678Z"}',
        b'{"id":' + b"1" * 5_000 + b"}",
    ],
)
def test_a_body_that_is_no_event_is_refused_when_it_is_read(body: bytes) -> None:
    with pytest.raises(VerificationFailed) as caught:
        Verified("a", NOW, body).event()
    assert caught.value.reason is Reason.NOT_AN_EVENT


def test_an_event_under_another_id_is_refused() -> None:
    with pytest.raises(VerificationFailed) as caught:
        Verified("another", NOW, event_body()).event()
    assert caught.value.reason is Reason.ID_MISMATCH
