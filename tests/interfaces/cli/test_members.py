"""`cuepost members`."""

import pytest

from tests.interfaces.cli.terminal import Terminal

UNKNOWN = "0190b7a4-0000-7000-8000-000000000000"


@pytest.fixture
def account_id(terminal: Terminal) -> str:
    found: str = terminal.json("accounts", "create")["id"]
    return found


def test_a_person_is_invited_and_the_link_is_printed_once(
    terminal: Terminal, account_id: str
) -> None:
    here = ("--account", account_id)
    made = terminal.json("members", "invite", *here, "--role", "viewer", "--email", "A@example.com")
    assert "/join/" in made.pop("url")
    assert (made["email"], made["role"]) == ("a@example.com", "viewer")
    assert terminal.json("members", "list", *here) == {"members": [], "invitations": [made]}
    again = terminal.json("members", "resend-invitation", made["id"], *here)
    assert "/join/" in again.pop("url")
    assert (again["email"], again["role"]) == ("a@example.com", "viewer")
    assert terminal.json("members", "list", *here) == {"members": [], "invitations": [again]}
    assert terminal.run("members", "revoke-invitation", made["id"], *here).exit_code == 1
    made = again
    assert terminal.json("members", "revoke-invitation", made["id"], *here) == {
        "revoked": made["id"]
    }
    assert terminal.json("members", "list", *here) == {"members": [], "invitations": []}


def test_the_last_owner_stays(terminal: Terminal, account_id: str) -> None:
    terminal.json("accounts", "sign-in-link", account_id)
    here = ("--account", account_id)
    [owner] = terminal.json("members", "list", *here)["members"]
    assert owner["role"] == "owner"
    for command in (("remove", owner["id"]), ("set-role", owner["id"], "--role", "viewer")):
        refused = terminal.run("members", *command, *here)
        assert refused.exit_code == 1
        assert "needs an owner" in refused.stderr
    same = terminal.json("members", "set-role", owner["id"], *here, "--role", "owner")
    assert same == owner


def test_alerts_by_e_mail_are_switched(terminal: Terminal, account_id: str) -> None:
    terminal.json("accounts", "sign-in-link", account_id)
    here = ("--account", account_id)
    [owner] = terminal.json("members", "list", *here)["members"]
    assert owner["alertsByEmail"] is True
    for wanted in ("off", "on"):
        changed = terminal.json("members", "set-alerts", owner["id"], wanted, *here)
        assert changed == owner | {"alertsByEmail": wanted == "on"}


def test_what_does_not_exist_is_said(terminal: Terminal, account_id: str) -> None:
    here = ("--account", account_id)
    for command in (
        ("list", "--account", UNKNOWN),
        ("invite", "--account", UNKNOWN, "--role", "viewer"),
        ("remove", UNKNOWN, *here),
        ("set-role", UNKNOWN, *here, "--role", "viewer"),
        ("set-alerts", UNKNOWN, "off", *here),
        ("resend-invitation", UNKNOWN, *here),
        ("revoke-invitation", UNKNOWN, *here),
    ):
        refused = terminal.run("members", *command)
        assert refused.exit_code == 1
        assert UNKNOWN in refused.stderr


def test_a_member_of_a_host_product_is_added_and_its_reference_changed(
    terminal: Terminal, account_id: str
) -> None:
    here = ("--account", account_id)
    add = ("members", "add", *here, "--role", "developer", "--external-id", "user_7")
    made = terminal.json(*add)
    assert (made["externalId"], made["role"], made["email"]) == ("user_7", "developer", None)
    again = terminal.run(*add)
    assert again.exit_code == 1
    assert made["id"] in again.stderr
    update = ("members", "update", made["id"], *here)
    assert terminal.json(*update, "--external-id", "user_8") == made | {"externalId": "user_8"}
    assert "user_8" in terminal.run("members", "list", *here).stdout
    assert terminal.json(*update, "--no-external-id") == made | {"externalId": None}
    assert terminal.run(*update).exit_code == 2
