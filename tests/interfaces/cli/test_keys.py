"""`cuepost keys`."""

from typing import Any

import pytest

from cuepost.domain.access import USUAL_SCOPES, key_id_in
from cuepost.domain.errors import Unauthenticated
from tests.interfaces.cli.terminal import Terminal

UNKNOWN = "0190b7a4-0000-7000-8000-000000000000"
LATER = "2126-01-31T00:00:00Z"


@pytest.fixture
def account_id(terminal: Terminal) -> str:
    found: str = terminal.json("accounts", "create")["id"]
    return found


def listed(key: dict[str, Any]) -> dict[str, Any]:
    """A key as it is shown ever after: without its token."""
    return {name: value for name, value in key.items() if name != "token"}


def test_an_account_key_has_all_scopes_unless_some_are_named(
    terminal: Terminal, account_id: str
) -> None:
    wide = terminal.json("keys", "create", "--account", account_id)
    narrow = terminal.json(
        *("keys", "create", "--account", account_id, "--name", "dashboard"),
        *("--scope", "projects:read", "--scope", "webhooks:read", "--expires-at", LATER),
    )

    assert wide["scopes"] == sorted(USUAL_SCOPES)
    assert narrow == {
        "id": str(key_id_in(narrow["token"])),
        "accountId": account_id,
        "name": "dashboard",
        "scopes": ["projects:read", "webhooks:read"],
        "createdAt": narrow["createdAt"],
        "expiresAt": "2126-01-31T00:00:00.000Z",
        "revokedAt": None,
        "lastUsedAt": None,
        "token": narrow["token"],
    }


def test_a_key_lets_its_account_in_until_it_is_revoked(terminal: Terminal, account_id: str) -> None:
    key = terminal.json("keys", "create", "--account", account_id)
    assert str(terminal.caller_with(key["token"]).account_id) == account_id

    revoked = terminal.json("keys", "revoke", key["id"])

    assert revoked == listed(key) | {
        "revokedAt": revoked["revokedAt"],
        "lastUsedAt": revoked["lastUsedAt"],
    }
    assert revoked["revokedAt"] is not None
    assert revoked["lastUsedAt"] is not None
    with pytest.raises(Unauthenticated):
        terminal.caller_with(key["token"])


def test_a_leaked_key_can_be_revoked_by_itself(terminal: Terminal) -> None:
    key = terminal.json("keys", "create", "--service")

    assert terminal.words("keys", "revoke", key["token"]) == f"Key {key['id']} is revoked.\n"


def test_a_service_key_belongs_to_no_account(terminal: Terminal) -> None:
    key = terminal.json("keys", "create", "--service", "--name", "pipeline")

    assert (key["accountId"], key["scopes"]) == (None, ["milestones:report"])


def test_an_operator_key_belongs_to_no_account(terminal: Terminal) -> None:
    key = terminal.json("keys", "create", "--operator", "--name", "our product")
    assert key["accountId"] is None
    assert key["scopes"] == ["accounts:manage", "accounts:read", "portal:create"]
    narrow = terminal.json("keys", "create", "--operator", "--scope", "accounts:read")
    assert narrow["scopes"] == ["accounts:read"]
    service = terminal.json("keys", "create", "--service")
    for option, expected in (("--operator", [key, narrow]), ("--service", [service])):
        found = terminal.json("keys", "list", option)["data"]
        assert [each["id"] for each in found] == [each["id"] for each in expected]
    assert "(operator)" in terminal.words("keys", "list")
    refused = terminal.refusal("keys", "list", "--service", "--operator")
    assert refused[0] == 2
    terminal.words("keys", "revoke", key["id"])
    [revoked] = [each for each in terminal.json("keys", "list")["data"] if each["id"] == key["id"]]
    assert revoked["revokedAt"]


def test_keys_are_listed_without_their_secrets(terminal: Terminal, account_id: str) -> None:
    service = terminal.json("keys", "create", "--service")
    mine = terminal.json("keys", "create", "--account", account_id)

    everything = terminal.words("keys", "list", "--json") + terminal.words("keys", "list")
    assert service["token"] not in everything
    assert mine["token"] not in everything
    assert terminal.json("keys", "list") == {"data": [listed(service), listed(mine)]}
    assert terminal.json("keys", "list", "--service") == {"data": [listed(service)]}
    assert terminal.json("keys", "list", "--account", account_id) == {"data": [listed(mine)]}
    assert terminal.json("keys", "list", "--account", UNKNOWN) == {"data": []}


def test_people_get_sentences_and_a_table(terminal: Terminal, account_id: str) -> None:
    assert terminal.words("keys", "list") == (
        "There are no such keys; 'cuepost keys create' creates one.\n"
    )
    said = terminal.words("keys", "create", "--account", account_id, "--scope", "projects:read")
    token = said.split()[-1]
    key_id = key_id_in(token)
    assert said == f"Created key {key_id}. It is shown only once:\n\n  {token}\n\n"
    terminal.words("keys", "revoke", str(key_id))
    terminal.words("keys", "create", "--service", "--expires-at", LATER)

    rows = [line.split("  ") for line in terminal.words("keys", "list").splitlines()]

    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells == [
        ["ID", "ACCOUNT", "STATE", "LAST USED", "NAME", "SCOPES"],
        [
            cells[1][0],
            "(service)",
            "until 2126-01-31T00:00:00.000Z",
            "never",
            "API key",
            "milestones:report",
        ],
        [str(key_id), account_id, "revoked", "never", "API key", "projects:read"],
    ]


def test_what_does_not_exist_is_said_in_one_line(terminal: Terminal) -> None:
    assert terminal.refusal("keys", "create", "--account", UNKNOWN) == (
        1,
        f"Error: There is no account {UNKNOWN}; 'cuepost accounts list' lists all accounts.\n",
    )
    assert terminal.refusal("keys", "revoke", UNKNOWN) == (
        1,
        f"Error: There is no key {UNKNOWN}; 'cuepost keys list' lists all keys.\n",
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "Give one of --account ID, --service and --operator."),
        (
            ("--service", "--account", UNKNOWN),
            "Give one of --account ID, --service and --operator.",
        ),
        (("--service", "--scope", "projects:read"), "Choose from milestones:report."),
        (("--operator", "--service"), "Give one of --account ID, --service and --operator."),
        (("--service", "--scope", "accounts:read"), "Choose from milestones:report."),
        (
            ("--operator", "--scope", "projects:read"),
            "Choose from accounts:manage, accounts:read, portal:create.",
        ),
        (("--service", "--expires-at", "soon"), "'soon' is not a time such as 2027-01-31T"),
        (("--service", "--expires-at", "2126-01-31T00:00:00"), "has no time zone;"),
        (("--service", "--expires-at", "2020-01-31T00:00:00Z"), "--expires-at is in the past."),
    ],
)
def test_what_cannot_be_made_is_a_usage_error(
    empty_sqlite: Terminal, arguments: tuple[str, ...], why: str
) -> None:
    code, said = empty_sqlite.refusal("keys", "create", *arguments)

    assert code == 2
    assert why in said
    assert empty_sqlite.json("keys", "list") == {"data": []}


def test_a_half_typed_key_is_not_repeated(empty_sqlite: Terminal) -> None:
    code, said = empty_sqlite.refusal("keys", "revoke", "cpk_halfOfASecret")

    assert code == 2
    assert "halfOfASecret" not in said


def test_service_keys_leave_an_audit_trail_of_the_operators(terminal: Terminal) -> None:
    account = terminal.json("accounts", "create")["id"]
    terminal.json("keys", "create", "--account", account)
    key = terminal.json("keys", "create", "--service", "--name", "pipeline")
    terminal.json("keys", "revoke", key["id"])
    trail = terminal.json("audit")["data"]
    assert [(each["action"], each["subject"], each["details"]) for each in trail] == [
        ("key.revoked", key["id"], {"name": "pipeline"}),
        ("key.created", key["id"], {"name": "pipeline"}),
    ]
    assert all(
        each["actor"].startswith("operator:") and each["interface"] == "cli" for each in trail
    )
    of_account = terminal.json("audit", "--account", account)["data"]
    assert [each["action"] for each in of_account] == ["key.created", "account.created"]
    words = terminal.words("audit", "--limit", "1")
    assert "key.revoked" in words
    assert "key.created" not in words


def test_without_service_keys_the_trail_of_the_operators_is_empty(terminal: Terminal) -> None:
    assert terminal.words("audit") == "There are no entries.\n"
