"""`cuepost setup` and `cuepost migrate`."""

import json
import subprocess
from pathlib import Path

from cuepost.bootstrap.runtime import ServiceRuntime
from cuepost.domain.access import SERVICE_SCOPES, USUAL_SCOPES
from cuepost.interfaces.cli.first_account import make_first_account
from tests.interfaces.cli.terminal import Terminal
from tests.support.service_process import PATIENCE_SECONDS, command, environment


def test_an_empty_store_gets_a_schema_an_account_with_access_and_its_keys(empty: Terminal) -> None:
    made = empty.json("setup")

    assert list(made) == ["accountId", "apiKey", "serviceKey", "signInUrl"]
    assert made["signInUrl"].startswith("http://127.0.0.1:8000/sign-in/")
    owner, pipeline = (empty.caller_with(made[name]) for name in ("apiKey", "serviceKey"))
    assert (str(owner.account_id), owner.scopes) == (made["accountId"], USUAL_SCOPES)
    assert owner.webhooks_enabled
    assert (pipeline.account_id, pipeline.scopes) == (None, SERVICE_SCOPES)


def test_a_second_setup_changes_nothing_and_says_so(terminal: Terminal) -> None:
    first = terminal.json("setup")
    before = terminal.json("accounts", "list"), terminal.json("keys", "list")

    assert terminal.json("setup") == {
        "accountId": first["accountId"],
        "apiKey": None,
        "serviceKey": None,
        "signInUrl": None,
        "alreadySetUp": True,
    }
    said = terminal.words("setup")
    assert said == f"Already set up; the first account is {first['accountId']}.\n"
    assert (terminal.json("accounts", "list"), terminal.json("keys", "list")) == before


def test_people_see_the_keys_once(terminal: Terminal) -> None:
    lines = terminal.words("setup").splitlines()

    [account] = terminal.json("accounts", "list")["data"]
    assert lines[:2] == ["Set up. Store these keys now; they are shown only once.", ""]
    assert [line.split("  ")[1] for line in lines[2:]] == [
        "Account",
        "API key",
        "Service key",
        "Sign in at",
    ]
    assert lines[2].endswith(account["id"])
    assert terminal.caller_with(lines[3].split()[-1]).account_id is not None


def test_setups_that_run_at_once_make_one_account(empty: Terminal) -> None:
    settings = {name.removeprefix("CUEPOST_"): value for name, value in empty.environ.items()}
    running = [
        subprocess.Popen(
            command("setup", "--json"),
            env=environment(settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    ended = [(*each.communicate(timeout=PATIENCE_SECONDS), each.returncode) for each in running]

    assert [(said, code) for _, said, code in ended] == [("", 0)] * 3
    answers = [json.loads(printed) for printed, _, _ in ended]
    assert len({answer["accountId"] for answer in answers}) == 1
    assert sorted("alreadySetUp" in answer for answer in answers) == [False, True, True]
    assert len(empty.json("accounts", "list")["data"]) == 1
    [winner] = [answer for answer in answers if answer["apiKey"]]
    assert empty.caller_with(winner["apiKey"]).webhooks_enabled


def test_the_keys_are_not_in_the_repr_of_what_setup_made(empty_sqlite: Terminal) -> None:
    first = ServiceRuntime(empty_sqlite.environ).use(make_first_account)

    assert repr(first) == f"FirstAccount(account_id={first.account_id!r})"


def test_the_data_folder_and_all_in_it_are_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "data"
    environ = environment({"DATA_DIR": str(folder)})

    subprocess.run(command("setup"), env=environ, check=True, capture_output=True, timeout=30)

    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}
    assert modes == {
        "data": 0o700,
        "cuepost.sqlite3": 0o600,
        "cuepost.sqlite3.lock": 0o600,
        "master.key": 0o600,
    }


def test_migrate_makes_the_schema_and_may_be_repeated(empty: Terminal) -> None:
    assert empty.words("migrate") == "The schema is up to date.\n"
    assert empty.json("migrate") == {"upToDate": True}
    assert empty.json("accounts", "list") == {"data": []}
