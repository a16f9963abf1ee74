"""Alerts: their changes, events, messages, and how long an e-mail is tried."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cuepost.domain.alert import (
    ENDED,
    MAIL_LIFE,
    OPENED,
    Alert,
    AlertKind,
    AlertMail,
    event_of,
    message,
)
from cuepost.testing import START, SequentialIds

IDS = SequentialIds()
ALERT = Alert(IDS(START), IDS(START), AlertKind.FAILING, START)
MAIL = AlertMail(*(IDS(START), IDS(START)), AlertKind.FAILING, START, OPENED, IDS(START), START)


def test_a_change_is_announced_after_the_one_before() -> None:
    assert ALERT.next_change == OPENED
    assert replace(ALERT, announced=OPENED).next_change == ENDED


def test_failures_have_events_and_backlogs_have_none() -> None:
    assert event_of(ALERT, OPENED) == "endpoint.failing"
    assert event_of(ALERT, ENDED) == "endpoint.recovered"
    assert event_of(replace(ALERT, kind=AlertKind.BACKLOG), OPENED) is None


def test_an_email_is_given_up_after_its_life_but_not_before_it_was_tried() -> None:
    end = START + MAIL_LIFE
    assert not MAIL.is_given_up(end)
    tried = replace(MAIL, attempts_made=1)
    assert tried.is_given_up(end)
    assert not tried.is_given_up(end - timedelta(milliseconds=1))


@pytest.mark.parametrize("kind", AlertKind)
@pytest.mark.parametrize("change", [OPENED, ENDED])
def test_a_message_names_the_host_and_the_page(kind: AlertKind, change: int) -> None:
    mail = replace(MAIL, kind=kind, number=change)
    said = message(mail, "hooks.example.com", "https://cuepost.example.com/x", "2026-01-02")
    assert said.subject.startswith("[cuepost] ")
    assert "hooks.example.com" in said.subject
    assert "2026-01-02" in said.text
    assert "\nhttps://cuepost.example.com/x\n" in said.text
