"""The outcomes of an attempt: a closed list, each explained to people."""

import pytest

from cuepost.domain.attempt import EXPLANATIONS, Outcome, outcome_of


def test_outcomes_are_the_closed_list_of_the_contract() -> None:
    assert list(Outcome) == [
        "delivered",
        "http_error",
        "redirect",
        "timeout",
        "dns_error",
        "connect_error",
        "tls_error",
        "blocked_destination",
        "protocol_error",
    ]


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_a_sentence_and_a_way_to_mend_it(outcome: Outcome) -> None:
    explanation = EXPLANATIONS[outcome]
    assert explanation.sentence.endswith(".")
    assert explanation.mend.endswith(".")


def test_no_two_outcomes_are_explained_alike() -> None:
    assert len(set(EXPLANATIONS.values())) == len(Outcome)


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
