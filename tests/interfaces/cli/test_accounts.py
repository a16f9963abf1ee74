"""`cuepost accounts`."""

import re
from getpass import getuser
from uuid import UUID

import pytest

from cuepost.bootstrap.runtime import ServiceRuntime
from cuepost.domain.access import Interface
from cuepost.domain.audit import Action, AuditEntry
from cuepost.interfaces.cli import accounts
from cuepost.interfaces.cli.runtime import CommandContext
from cuepost.ports.records import Page
from tests.interfaces.cli.terminal import Terminal

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
UNKNOWN = "0190b7a4-0000-7000-8000-000000000000"


@pytest.mark.parametrize("access", ["open", "closed"])
def test_a_new_account_has_the_access_that_the_settings_say(
    terminal: Terminal, access: str
) -> None:
    operator = terminal.with_settings(WEBHOOKS_ACCESS=access)

    account = operator.json("accounts", "create", "--name", " Harbour Films ")

    assert INSTANT.fullmatch(account.pop("createdAt"))
    assert UUID(account.pop("id")).version == 7
    assert account == {
        "externalId": None,
        "name": "Harbour Films",
        "webhooksAccess": access,
        "state": "live",
    }


def test_accounts_are_listed_in_the_order_of_their_creation(terminal: Terminal) -> None:
    assert terminal.json("accounts", "list") == {"data": []}
    made = [terminal.json("accounts", "create", "--name", name) for name in ("One", "Two")]

    assert terminal.json("accounts", "list") == {"data": made}


def test_long_lists_are_read_in_pages(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [terminal.json("accounts", "create", "--name", str(name)) for name in range(4)]
    keys = [terminal.json("keys", "create", "--account", each["id"])["id"] for each in made]
    monkeypatch.setattr("cuepost.interfaces.cli.paging.AT_ONCE", 2)

    assert terminal.json("accounts", "list") == {"data": made}
    assert [each["id"] for each in terminal.json("keys", "list")["data"]] == keys


def test_people_get_sentences_and_a_table(terminal: Terminal) -> None:
    assert terminal.words("accounts", "list") == (
        "There are no such accounts; 'cuepost accounts create' creates one.\n"
    )
    created = terminal.words("accounts", "create", "--name", "Harbour Films")
    [account] = terminal.json("accounts", "list")["data"]

    assert created == (
        f"Created account {account['id']}; its access to webhooks is closed.\n"
        f"To create an API key: cuepost keys create --account {account['id']}\n"
    )
    assert terminal.words("accounts", "list").splitlines() == [
        f"{'ID':<36}  WEBHOOKS  STATE  {'CREATED':<24}  EXTERNAL ID  NAME",
        f"{account['id']}  closed    live   {account['createdAt']}  -            Harbour Films",
    ]


def test_access_is_opened_and_closed(terminal: Terminal) -> None:
    account = terminal.json("accounts", "create")

    opened = terminal.json("accounts", "open-access", account["id"])
    assert opened == account | {"webhooksAccess": "open"}
    assert terminal.json("accounts", "list") == {"data": [opened]}
    closed = terminal.words("accounts", "close-access", account["id"])
    assert closed == f"The access of account {account['id']} to webhooks is closed.\n"
    assert terminal.json("accounts", "list") == {"data": [account]}


def test_what_operators_do_is_in_the_audit_trail_with_their_login(terminal: Terminal) -> None:
    account = terminal.json("accounts", "create")
    terminal.json("accounts", "open-access", account["id"])

    async def look(context: CommandContext) -> list[AuditEntry]:
        return await context.service.perform.read(
            lambda transaction: transaction.audit.page(UUID(account["id"]), Page(limit=10))
        )

    entries = ServiceRuntime(terminal.environ).use(look)
    assert [(entry.action, entry.actor, entry.interface) for entry in entries] == [
        (Action.ACCESS_OPENED, f"operator:{getuser()}", Interface.CLI),
        (Action.ACCOUNT_CREATED, f"operator:{getuser()}", Interface.CLI),
    ]


def test_the_audit_trail_is_filtered(terminal: Terminal) -> None:
    account = terminal.json("accounts", "create")["id"]
    for command in ("close-access", "open-access"):
        terminal.json("accounts", command, account)
    opened, closed, created = terminal.json("audit", "--account", account)["data"]
    for options, expected in (
        (("--action", "account.access_closed"), [closed]),
        (("--action", "account", "--limit", "2"), [opened, closed]),
        (("--action", "webhook"), []),
        (("--actor", f"operator:{getuser()}"), [opened, closed, created]),
        (("--actor", "operator"), [opened, closed, created]),
        (("--actor", "user"), []),
        (("--until", created["at"]), []),
    ):
        found = terminal.json("audit", "--account", account, *options)["data"]
        assert found == expected, options
    recent = terminal.json("audit", "--account", account, "--since", opened["at"])["data"]
    assert opened in recent
    assert [each for each in recent if each["at"] < opened["at"]] == []
    code, said = terminal.refusal("audit", "--action", "painted")
    assert code == 2
    assert "painted" in said


@pytest.mark.parametrize("command", ["open-access", "close-access"])
def test_an_unknown_account_is_refused(terminal: Terminal, command: str) -> None:
    assert terminal.refusal("accounts", command, UNKNOWN) == (
        1,
        f"Error: There is no account {UNKNOWN}; 'cuepost accounts list' lists all accounts.\n",
    )


@pytest.mark.parametrize("name", ["", "  ", "a\x1b[2Jb", "line\nbreak", "\udce9", "x" * 101])
def test_a_name_that_no_terminal_should_show_is_a_usage_error(
    empty_sqlite: Terminal, name: str
) -> None:
    code, said = empty_sqlite.refusal("accounts", "create", "--name", name)

    assert code == 2
    assert said.endswith("expected 1 to 100 printable characters.\n")


def test_an_id_that_is_none_is_a_usage_error(empty_sqlite: Terminal) -> None:
    code, said = empty_sqlite.refusal("accounts", "open-access", "first")

    assert code == 2
    assert said.endswith("'first' is not an id, nor 'external:' and an external id.\n")


def test_an_account_is_named_by_its_external_id(terminal: Terminal) -> None:
    account = terminal.json("accounts", "create", "--external-id", "cust_42")
    assert account["externalId"] == "cust_42"
    named = "external:cust_42"
    assert terminal.json("accounts", "get", named) == account
    assert terminal.json("accounts", "get", account["id"]) == account
    opened = account | {"webhooksAccess": "open"}
    assert terminal.json("accounts", "open-access", named) == opened
    assert terminal.json("accounts", "close-access", named) == account
    renamed = terminal.json("accounts", "update", named, "--name", "Film")
    assert renamed == account | {"name": "Film"}
    moved = terminal.json("accounts", "update", named, "--external-id", "cust_43")
    assert moved == renamed | {"externalId": "cust_43"}
    bare = terminal.json("accounts", "update", account["id"], "--no-external-id")
    assert bare == renamed | {"externalId": None}
    assert terminal.refusal("accounts", "get", named) == (
        1,
        f"Error: There is no account {named}; 'cuepost accounts list' lists all accounts.\n",
    )


def test_people_see_an_account_as_a_list_of_facts(terminal: Terminal) -> None:
    account = terminal.json("accounts", "create", "--name", "Film", "--external-id", "cust_42")
    lines = terminal.words("accounts", "get", "external:cust_42").splitlines()
    assert [line.split() for line in lines] == [[name, value] for name, value in account.items()]


def test_accounts_are_found_by_the_beginning_of_name_or_external_id(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "AT_ONCE", 1)
    made = {
        name: terminal.json("accounts", "create", "--name", name, "--external-id", external_id)
        for name, external_id in (("Harz", "b_2"), ("harbour", "a_1"), ("Harbour Films", "b_1"))
    }

    def found(*options: str) -> list[str]:
        return [each["name"] for each in terminal.json("accounts", "list", *options)["data"]]

    assert found("--name-prefix", "HARBOUR") == ["harbour", "Harbour Films"]
    assert found("--external-id-prefix", "b_") == ["Harbour Films", "Harz"]
    assert found("--name-prefix", "x") == []
    assert found() == list(made)


def test_an_external_id_that_is_taken_is_refused(terminal: Terminal) -> None:
    account = terminal.json("accounts", "create", "--external-id", "cust_42")
    assert terminal.refusal("accounts", "create", "--external-id", "cust_42") == (
        1,
        f"Error: The account {account['id']} has this external id.\n",
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "--external-id", "a/b"), "Give 1 to 200 letters, digits"),
        (("get", "cust_42"), "is not an id, nor 'external:' and an external id."),
        (("list", "--name-prefix", "a", "--external-id-prefix", "b"), "not both."),
        (("update", UNKNOWN, "--external-id", "a", "--no-external-id"), "not both."),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_store_is_opened(
    empty_sqlite: Terminal, arguments: tuple[str, ...], said: str
) -> None:
    code, words = empty_sqlite.refusal("accounts", *arguments)
    assert code == 2
    assert said in words
