"""The audit trail: what is written down, and for how long."""

from cuepost.domain.audit import GROUPS, RETENTION_DAYS, Action, actions_in


def test_entries_are_kept_for_four_hundred_days() -> None:
    assert RETENTION_DAYS == 400


def test_every_action_is_named_after_its_subject() -> None:
    assert {action.split(".")[0] for action in Action} == {
        "account",
        "bulk_retry",
        "delivery",
        "invitation",
        "key",
        "listener",
        "member",
        "portal",
        "project",
        "user",
        "webhook",
    }
    assert all(action.count(".") == 1 for action in Action)


def test_an_action_and_a_group_of_actions_can_be_chosen() -> None:
    assert actions_in("key.created") == {Action.KEY_CREATED}
    assert actions_in("key") == {Action.KEY_CREATED, Action.KEY_REVOKED}
    assert actions_in("web") == actions_in("") == actions_in("key.") == frozenset()


def test_every_action_is_in_one_group() -> None:
    assert len(set(GROUPS)) == len(GROUPS)
    assert sum(len(actions_in(group)) for group in GROUPS) == len(Action)
