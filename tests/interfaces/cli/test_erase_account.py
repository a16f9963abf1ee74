"""`cuepost erase-account`."""

from uuid import UUID

import pytest

from cuepost.bootstrap.runtime import ServiceRuntime
from cuepost.domain.access import ACCOUNT_SCOPES, Caller, Interface
from cuepost.domain.project import Origin, ProjectKind
from cuepost.interfaces.cli.runtime import CommandContext
from tests.interfaces.cli.terminal import Terminal

UNKNOWN = "0190b7a4-0000-7000-8000-000000000000"


def populated_account(terminal: Terminal) -> str:
    """An account with a key, an endpoint, a project and a delivery."""
    account_id: str = terminal.json("accounts", "create")["id"]
    terminal.json("accounts", "open-access", account_id)
    terminal.json("keys", "create", "--account", account_id)
    owner = Caller(
        Interface.REST, "key:test", UUID(account_id), ACCOUNT_SCOPES, webhooks_enabled=True
    )

    async def populate(context: CommandContext) -> None:
        service = context.service
        async with service.perform.store.transaction() as transaction:
            made = await service.webhooks.create(
                transaction, owner, "https://hooks.example.com/", (), ""
            )
            await service.webhooks.send_test(transaction, owner, made.view.endpoint.id)
            await service.projects.create(
                transaction,
                owner,
                name="Trailer",
                kind=ProjectKind.VIDEO,
                origin=Origin.API,
                access_expires_at=None,
            )

    ServiceRuntime(terminal.environ).use(populate)
    return account_id


def test_everything_of_the_account_goes_and_the_others_stay(terminal: Terminal) -> None:
    stays, goes = populated_account(terminal), populated_account(terminal)
    keys = terminal.json("keys", "list", "--account", stays)

    assert terminal.json("erase-account", goes, "--yes") == {"accountId": goes, "erased": True}

    assert [account["id"] for account in terminal.json("accounts", "list")["data"]] == [stays]
    assert terminal.json("keys", "list") == keys
    [entry] = terminal.json("audit")["data"]
    assert (entry["action"], entry["subject"]) == ("account.erasure_started", goes)
    assert terminal.refusal("erase-account", goes, "--yes") == (
        1,
        f"Error: There is no account {goes}; 'cuepost accounts list' lists all accounts.\n",
    )


def test_it_goes_when_its_id_is_typed(terminal: Terminal) -> None:
    account_id = populated_account(terminal)

    result = terminal.run("erase-account", account_id, typed=f"{account_id}\n")

    assert (result.exit_code, result.stdout) == (0, f"Account {account_id} was erased.\n")
    assert terminal.json("accounts", "list") == {"data": []}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (f"{UNKNOWN}\n", "Error: This is not the id of the account; nothing was erased.\n"),
        ("yes\n", "Error: This is not the id of the account; nothing was erased.\n"),
        ("", "Aborted!\n"),
    ],
)
def test_it_stays_when_anything_else_is_typed(
    empty_sqlite: Terminal, typed: str, said: str
) -> None:
    account = empty_sqlite.json("accounts", "create", "--name", "Harbour Films")

    code, words = empty_sqlite.refusal("erase-account", account["id"], typed=typed)

    assert code == 1
    assert words.startswith("All data of the account 'Harbour Films' will be erased permanently.\n")
    assert words.endswith(said)
    assert empty_sqlite.json("accounts", "list") == {"data": [account]}
