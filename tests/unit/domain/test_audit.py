"""The audit trail: what is written down, and for how long."""

from cuepost.domain.audit import RETENTION_DAYS, Action


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
