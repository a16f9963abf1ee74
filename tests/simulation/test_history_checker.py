"""The checker sees each kind of broken promise, and finds nothing where all are kept."""

from dataclasses import replace

import pytest

from cuepost.domain.signing import SigningSecret, signature
from tests.support.history_checker import History
from tests.support.history_facts import (
    Look,
    SecretLife,
    Seen,
    Stop,
    StoredAttempt,
    StoredDelivery,
)

OLD, NEW = SigningSecret(b"o" * 32), SigningSecret(b"n" * 32)
BODY = b"{}"
NOON = 1_000_000.0
ROTATED = NOON + 30.0


def seen(at: float, *secrets: SigningSecret, **changed: object) -> Seen:
    timestamp = int(at)
    signatures = " ".join(signature(each, "event", timestamp, BODY) for each in secrets)
    headers = {
        "webhook-id": "event",
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signatures,
    }
    made = Seen(at, "hook", headers, BODY, answered=500, ended_at=at + 1)
    return replace(made, **changed)  # type: ignore[arg-type]  # named by the test


def attempt(number: int, started_at: float, outcome: str = "http_error") -> StoredAttempt:
    return StoredAttempt(1, number, outcome, started_at, 1_000.0)


ATTEMPTS = (
    attempt(1, NOON),
    attempt(2, NOON + 61),
    attempt(3, NOON + 362, "delivered"),
)
INTERRUPTED = StoredAttempt(0, 1, "interrupted", NOON + 40, 0.0)
DELIVERY = StoredDelivery("delivery", "hook", "event", "delivered", None, ATTEMPTS)
SEEN = [
    seen(NOON, OLD),
    seen(NOON + 61, NEW, OLD),
    seen(NOON + 362, NEW, answered=200),
]


def kept() -> History:
    return History(
        acknowledged={"event"},
        seen=list(SEEN),
        deliveries=[DELIVERY],
        promised={("event", "hook")},
        lives={
            "hook": [
                SecretLife(OLD.reveal(), NOON - 60, until=NOON + 300),
                SecretLife(NEW.reveal(), ROTATED),
            ]
        },
        stops=[Stop(NOON + 363, webhook_id="hook"), Stop(NOON + 363, project_id="project")],
        project_of={"event": "project"},
        cap=1,
        owners={"hook": "mine", "event": "mine", "project": "mine", "other event": "theirs"},
        looks=[Look("mine", "delivery", ("hook", "event", "unknown"))],
        shown={"the log": f"signed with {OLD.hint}"},
        sees_all=True,
    )


def broken(history: History) -> set[str]:
    return {each.partition(" ")[0] for each in history.broken_promises()}


def test_nothing_is_broken_where_everything_was_kept() -> None:
    assert kept().broken_promises() == []
    assert kept().duplicates() == 0


def test_without_the_lives_of_secrets_any_known_one_will_do() -> None:
    history = kept()
    history.lives, history.secrets = {}, {"hook": [OLD.reveal(), NEW.reveal()]}
    assert history.broken_promises() == []
    history.secrets = {"hook": [OLD.reveal()]}
    assert broken(history) == {"I2"}


@pytest.mark.parametrize("status", ["pending", "delivering", "retrying", "lost", "cancelled"])
def test_a_delivery_that_never_ended_is_lost(status: str) -> None:
    history = kept()
    history.deliveries = [replace(DELIVERY, status=status)]
    assert broken(history) == {"I1"}


def test_a_failure_before_the_budget_is_spent_is_a_loss() -> None:
    history = kept()
    history.seen = history.seen[:2]
    history.deliveries = [replace(DELIVERY, status="failed", attempts=ATTEMPTS[:2])]
    assert broken(history) == {"I1"}


def test_an_acknowledged_event_without_a_delivery_is_lost() -> None:
    history = kept()
    history.acknowledged.add("other")
    history.promised.add(("event", "other hook"))
    assert len(history.broken_promises()) == 2
    assert broken(history) == {"I1"}
    history.gone.add("other hook")
    assert len(history.broken_promises()) == 1


def test_delivered_means_that_a_receiver_acknowledged_it() -> None:
    history = kept()
    history.seen[-1] = seen(NOON + 362, NEW, answered=500)
    assert broken(history) == {"I2"}


def test_one_other_byte_is_seen() -> None:
    history = kept()
    history.seen[1] = replace(SEEN[1], body=b"{ }")
    assert broken(history) == {"I3", "I6"}


@pytest.mark.parametrize(
    "attempts",
    [
        pytest.param((*ATTEMPTS, attempt(4, NOON + 2_000)), id="four"),
        pytest.param((ATTEMPTS[0], ATTEMPTS[2]), id="one is missing"),
        pytest.param((*ATTEMPTS[:2], attempt(2, NOON + 362)), id="one twice"),
        pytest.param((ATTEMPTS[0], attempt(2, NOON + 60.99), ATTEMPTS[2]), id="early"),
        pytest.param((*ATTEMPTS[:2], attempt(3, NOON + 361.9)), id="the third one early"),
    ],
)
def test_too_many_and_too_early_are_seen(attempts: tuple[StoredAttempt, ...]) -> None:
    history = kept()
    history.deliveries = [replace(DELIVERY, attempts=attempts)]
    assert broken(history) - {"I10"} == {"I4"}


@pytest.mark.parametrize("of", [Stop(0, webhook_id="hook"), Stop(0, project_id="project")])
def test_nothing_may_be_sent_after_a_stop(of: Stop) -> None:
    history = kept()
    history.stops = [replace(of, since=NOON + 360)]
    assert broken(history) == {"I5"}
    history.stops = [
        replace(of, since=NOON + 361.5),
        replace(of, since=NOON + 300, until=NOON + 362),
    ]
    assert history.broken_promises() == []


@pytest.mark.parametrize(
    ("place", "at", "secrets"),
    [
        pytest.param(0, NOON, (), id="unsigned"),
        pytest.param(0, NOON, (NEW,), id="a secret that is not known yet"),
        pytest.param(1, NOON + 61, (OLD, NEW), id="the old one first"),
        pytest.param(1, NOON + 61, (NEW,), id="one signature during the overlap"),
        pytest.param(2, NOON + 362, (NEW, OLD), id="two signatures after it"),
    ],
)
def test_signatures_are_exact(place: int, at: float, secrets: tuple[SigningSecret, ...]) -> None:
    history = kept()
    history.seen[place] = seen(at, *secrets, answered=SEEN[place].answered)
    assert broken(history) == {"I6"}


def test_a_secret_that_was_cut_short_signs_no_more() -> None:
    history = kept()
    first = history.lives["hook"][0]
    history.lives["hook"][0] = replace(first, cut=NOON + 59)
    assert broken(history) == {"I6"}


def test_of_two_secrets_of_one_instant_the_later_one_signs_first() -> None:
    history = kept()
    first, second = history.lives["hook"]
    history.lives["hook"] = [first, replace(second, since=first.since)]
    history.seen[0] = seen(SEEN[0].at, NEW, OLD, answered=SEEN[0].answered)
    assert broken(history) == set()
    history.seen[0] = seen(SEEN[0].at, OLD, NEW, answered=SEEN[0].answered)
    assert broken(history) == {"I6"}


@pytest.mark.parametrize("secrets", [(OLD,), (NEW, OLD), (NEW,)])
def test_a_secret_may_come_and_another_go_in_one_instant(
    secrets: tuple[SigningSecret, ...],
) -> None:
    history = kept()
    at = SEEN[1].at
    first, second = history.lives["hook"]
    history.lives["hook"] = [replace(first, cut=at), replace(second, since=at)]
    history.seen[1] = seen(at, *secrets, answered=SEEN[1].answered)
    assert broken(history) == set()
    history.seen[1] = seen(at, OLD, NEW, answered=SEEN[1].answered)
    assert broken(history) == {"I6"}


def test_more_at_once_than_the_cap_is_seen() -> None:
    history = kept()
    history.deliveries = [replace(DELIVERY, attempts=(*ATTEMPTS, INTERRUPTED))]
    history.seen.append(seen(NOON + 0.5, OLD))
    assert broken(history) == {"I7"}
    history.cap = 2
    assert history.broken_promises() == []


def test_a_request_that_is_not_on_record_is_seen() -> None:
    history = kept()
    history.seen.append(seen(NOON + 30, OLD))
    assert broken(history) == {"I10"}
    for outcome in ("interrupted", "superseded"):
        extra = replace(INTERRUPTED, outcome=outcome)
        history.deliveries = [replace(DELIVERY, attempts=(*ATTEMPTS, extra))]
        assert history.broken_promises() == []
    history.seen.append(seen(NOON + 58, NEW, OLD))
    assert broken(history) == {"I10"}


def test_an_interrupted_attempt_may_have_been_sent_or_not() -> None:
    history = kept()
    history.deliveries = [replace(DELIVERY, attempts=(*ATTEMPTS, INTERRUPTED))]
    assert history.broken_promises() == []
    superseded = replace(INTERRUPTED, outcome="superseded")
    history.deliveries = [replace(DELIVERY, attempts=(*ATTEMPTS, superseded))]
    assert broken(history) == {"I10"}
    # A receiver does not see what never reached it.
    history.sees_all = False
    assert history.broken_promises() == []


def test_a_copy_that_nothing_excuses_is_seen() -> None:
    history = kept()
    history.deliveries = [replace(DELIVERY, attempts=(*ATTEMPTS, INTERRUPTED))]
    history.undisturbed = True
    assert broken(history) == {"I4"}


def test_an_interrupted_attempt_that_counts_for_a_budget_is_seen() -> None:
    history = kept()
    counted = replace(INTERRUPTED, budget=1, number=4)
    history.deliveries = [replace(DELIVERY, attempts=(*ATTEMPTS, counted))]
    assert broken(history) == {"I4"}


def test_an_attempt_that_was_never_made_is_seen() -> None:
    history = kept()
    del history.seen[0]
    assert broken(history) == {"I10"}


def test_another_id_is_seen() -> None:
    history = kept()
    headers = SEEN[1].headers | {"webhook-id": "another"}
    history.seen[1] = replace(SEEN[1], headers=headers)
    assert broken(history) == {"I3", "I10", "I6"}
    history.gone.add("hook")
    assert broken(history) == {"I10", "I6"}


@pytest.mark.parametrize("late", [-301.0, 301.0])
def test_a_timestamp_that_receivers_refuse_is_seen(late: float) -> None:
    history = kept()
    history.lives, history.secrets = {}, {"hook": [OLD.reveal(), NEW.reveal()]}
    history.seen[0] = replace(SEEN[0], clock=NOON + late)
    assert broken(history) == {"I2"}


@pytest.mark.parametrize(
    "ids", [("other event",), ("hook", "other event")], ids=["alone", "among one's own"]
)
def test_a_row_of_another_account_is_seen(ids: tuple[str, ...]) -> None:
    history = kept()
    history.looks.append(Look("mine", "delivery", ids))
    assert broken(history) == {"I8"}


def test_an_event_that_goes_to_a_stranger_is_seen() -> None:
    history = kept()
    history.owners["event"] = "theirs"
    history.looks.clear()
    assert broken(history) == {"I8"}


@pytest.mark.parametrize(
    "text",
    [
        OLD.reveal(),
        NEW.reveal().removeprefix("whsec_"),
        OLD.key.hex(),
        repr(NEW.key),
        f"{{'secret': '{OLD.reveal().rstrip('=')}'}}",
    ],
)
def test_a_secret_that_can_be_read_is_seen(text: str) -> None:
    history = kept()
    history.shown["a page"] = f"… {text} …"
    assert history.broken_promises() == ["I9 a secret is to be read in a page"]


def test_what_happens_by_the_clock_is_judged_by_the_clock() -> None:
    """It was set back by a minute: access has not ended, and the old secret still signs."""
    history = kept()
    history.seen[2] = replace(seen(NOON + 362, NEW, OLD, answered=200), clock=NOON + 299)
    history.stops.append(Stop(NOON, project_id="project", due=NOON + 300))
    assert history.broken_promises() == []
    history.seen[2] = replace(history.seen[2], clock=NOON + 302)
    assert broken(history) == {"I5", "I6"}


def test_what_was_acknowledged_twice_is_counted() -> None:
    history = kept()
    history.seen.append(seen(NOON + 362.5, NEW, answered=204))
    history.cap = None
    again = StoredAttempt(0, 1, "superseded", NOON + 362.5, 0.0)
    history.deliveries = [replace(DELIVERY, attempts=(*ATTEMPTS, again))]
    assert (history.broken_promises(), history.duplicates()) == ([], 1)
