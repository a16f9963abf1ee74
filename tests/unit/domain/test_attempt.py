"""The outcomes of an attempt: a closed list, each explained to people."""

from dataclasses import replace
from uuid import UUID

import pytest

from cuepost.domain.attempt import (
    EXPLANATIONS,
    TLS_EXPLANATIONS,
    UNCOUNTED,
    Explanation,
    Outcome,
    TlsFault,
    interrupted,
    last_of,
    outcome_of,
    superseded,
    trigger_of,
)
from cuepost.domain.delivery import Trigger
from cuepost.testing import START
from tests.support.records import Records


def test_outcomes_are_the_closed_list_of_the_contract() -> None:
    assert list(Outcome) == [
        "delivered",
        "http_error",
        "redirect",
        "timeout",
        "connect_error",
        "tls_error",
        "blocked_destination",
        "protocol_error",
        "interrupted",
        "superseded",
    ]


def explained(outcome: Outcome, fault: TlsFault | None = None) -> Explanation:
    records = Records()
    delivery = records.delivery(records.id())
    return records.attempt(delivery, outcome=outcome, tls_fault=fault).explanation


def test_tls_faults_are_a_closed_list_too() -> None:
    assert list(TlsFault) == [
        "certificate_expired",
        "certificate_not_yet_valid",
        "certificate_wrong_host",
        "certificate_unknown_authority",
        "tls_too_old",
        "tls_handshake_failed",
    ]


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_a_sentence_and_a_way_to_fix_it(outcome: Outcome) -> None:
    explanation = explained(outcome)
    assert explanation is EXPLANATIONS[outcome]
    assert explanation.sentence.endswith(".")
    assert explanation.fix.endswith(".")


@pytest.mark.parametrize("fault", TlsFault)
def test_a_tls_fault_is_explained_instead_of_the_outcome(fault: TlsFault) -> None:
    explanation = explained(Outcome.TLS_ERROR, fault)
    assert explanation is TLS_EXPLANATIONS[fault]
    assert explanation.sentence.endswith(".")
    assert explanation.fix.endswith(".")


def test_no_two_ends_are_explained_alike() -> None:
    said = [*EXPLANATIONS.values(), *TLS_EXPLANATIONS.values()]
    assert len(set(said)) == len(Outcome) + len(TlsFault)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (None, Outcome.PROTOCOL_ERROR),
        (199, Outcome.HTTP_ERROR),
        (200, Outcome.DELIVERED),
        (299, Outcome.DELIVERED),
        (300, Outcome.REDIRECT),
        (399, Outcome.REDIRECT),
        (400, Outcome.HTTP_ERROR),
        (500, Outcome.HTTP_ERROR),
    ],
)
def test_only_2xx_is_an_acknowledgement(status: int | None, outcome: Outcome) -> None:
    assert outcome_of(status) is outcome


def test_attempts_count_unless_they_were_interrupted_or_superseded() -> None:
    records = Records()
    delivery = records.delivery(records.id())
    assert [each for each in Outcome if not records.attempt(delivery, outcome=each).counts] == [
        Outcome.INTERRUPTED,
        Outcome.SUPERSEDED,
    ]


@pytest.mark.parametrize(
    ("budget", "attempts"),
    [
        (Trigger.AUTOMATIC, ["automatic", "automatic", "automatic"]),
        (Trigger.MANUAL, ["manual", "automatic", "automatic"]),
        (Trigger.TEST, ["test", "test", "test"]),
    ],
)
def test_a_person_triggers_only_the_first_attempt_of_a_budget(
    budget: Trigger, attempts: list[str]
) -> None:
    assert [trigger_of(budget, number) for number in (1, 2, 3)] == attempts


def test_the_last_attempt_is_the_newest_that_counts_or_the_newest_of_all() -> None:
    records = Records()
    delivery = records.delivery(records.id())
    first, second = (records.attempt(delivery, number=number) for number in (1, 2))
    records.clock.advance(1)
    lost = [
        records.attempt(delivery, budget=0, number=number, outcome=Outcome.INTERRUPTED)
        for number in (1, 2)
    ]
    assert last_of([second, first, *lost]) == second
    assert last_of(lost) == lost[1]
    assert last_of([]) is None


def test_of_an_interrupted_attempt_only_that_is_known() -> None:
    account_id, delivery_id = UUID(int=1), UUID(int=2)
    made = interrupted(account_id, delivery_id, Trigger.MANUAL, START)
    assert (made.account_id, made.delivery_id, made.trigger) == (
        account_id,
        delivery_id,
        Trigger.MANUAL,
    )
    assert (made.started_at, made.outcome, made.budget) == (START, Outcome.INTERRUPTED, UNCOUNTED)
    assert (made.request_headers, made.response_status, made.counts) == ((), None, False)


def test_a_superseded_attempt_keeps_what_was_answered_and_counts_for_no_budget() -> None:
    made = replace(
        interrupted(UUID(int=1), UUID(int=2), Trigger.AUTOMATIC, START),
        outcome=Outcome.DELIVERED,
        budget=1,
        number=2,
        response_status=200,
    )
    late = superseded(made)
    assert (late.outcome, late.budget, late.counts) == (Outcome.SUPERSEDED, UNCOUNTED, False)
    assert late.response_status == 200
