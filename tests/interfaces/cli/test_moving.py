"""`cuepost accounts export`, `import`, `finish-move`, `release` and `abort-move`."""

import gzip
import stat
from pathlib import Path

import pytest

from cuepost.domain.errors import AccountMoved
from tests.interfaces.cli.terminal import Terminal

MASTER_KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
UNKNOWN = "0190b7a4-0000-7000-8000-000000000000"


@pytest.fixture
def source(terminal: Terminal) -> Terminal:
    return terminal.with_settings(MASTER_KEY=MASTER_KEY)


@pytest.fixture
def target(tmp_path: Path) -> Terminal:
    return Terminal(
        {"CUEPOST_DATA_DIR": str(tmp_path / "target"), "CUEPOST_MASTER_KEY": MASTER_KEY}
    )


def test_an_account_moves_with_its_keys(source: Terminal, target: Terminal, tmp_path: Path) -> None:
    made, file = source.json("setup"), tmp_path / "account.gz"
    account_id, key = made["accountId"], made["apiKey"]
    exported = source.json("accounts", "export", account_id, "--to", str(file))
    assert exported["rows"] > 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.glob("*.part")) == []
    [listed] = source.json("accounts", "list")["data"]
    assert listed["state"] == "leaving"
    code, said = source.refusal("keys", "create", "--account", account_id)
    assert (code, "being moved" in said) == (1, True)

    assert target.json("accounts", "import", str(file))["accountId"] == account_id
    code, said = target.refusal("accounts", "release", account_id, "0" * 32)
    assert (code, "not the code" in said) == (1, True)
    code, said = source.refusal("accounts", "finish-move", account_id, typed="yes\n")
    assert "nothing was changed" in said
    words = source.run("accounts", "finish-move", account_id, typed=f"{account_id}\n").stdout
    released = words.split()[-1]
    assert "is live" in target.words("accounts", "release", account_id, released)

    assert str(target.caller_with(key).account_id) == account_id
    with pytest.raises(AccountMoved):
        source.caller_with(key)
    [listed] = target.json("accounts", "list")["data"]
    assert (listed["id"], listed["state"]) == (account_id, "live")
    # What is left of it says no more than that, and can be erased too.
    source.json("erase-account", account_id, "--yes")
    assert source.json("accounts", "list") == {"data": []}


def test_a_move_can_be_aborted_on_both_sides(
    source: Terminal, target: Terminal, tmp_path: Path
) -> None:
    made, file = source.json("setup"), str(tmp_path / "account.gz")
    account_id = made["accountId"]
    source.words("accounts", "export", account_id, "--to", file)
    target.words("accounts", "import", file)
    assert source.json("accounts", "abort-move", account_id)["live"] is True
    assert target.json("accounts", "abort-move", account_id)["live"] is False
    assert target.json("accounts", "list") == {"data": []}
    assert source.caller_with(made["apiKey"]).account_id is not None
    source.words("keys", "create", "--account", account_id)


def test_what_cannot_be_done_is_said_in_a_line(empty_sqlite: Terminal, tmp_path: Path) -> None:
    source = empty_sqlite.with_settings(MASTER_KEY=MASTER_KEY)
    account_id, file = source.json("setup")["accountId"], tmp_path / "account.gz"
    for arguments in (
        ("export", UNKNOWN, "--to", str(file)),
        ("finish-move", UNKNOWN, "--yes"),
        ("release", UNKNOWN, "code"),
        ("abort-move", UNKNOWN),
    ):
        assert source.refusal("accounts", *arguments) == (
            1,
            f"Error: There is no account {UNKNOWN}; 'cuepost accounts list' lists all accounts.\n",
        )
    for arguments in (("finish-move", account_id, "--yes"), ("abort-move", account_id)):
        assert source.refusal("accounts", *arguments)[0] == 1
    file.write_text("there already")
    code, said = source.refusal("accounts", "export", account_id, "--to", str(file))
    assert (code, "already exists" in said) == (1, True)
    code, said = source.refusal("accounts", "import", str(file))
    assert (code, "was not written by" in said) == (1, True)
    assert source.refusal("accounts", "import", str(tmp_path / "none"))[0] == 1
    both = source.refusal("accounts", "export", account_id, "--to", "-", "--json")
    assert both[0] == 2


def test_a_file_that_breaks_off_is_refused(
    empty_sqlite: Terminal, target: Terminal, tmp_path: Path
) -> None:
    source = empty_sqlite.with_settings(MASTER_KEY=MASTER_KEY)
    account_id, file = source.json("setup")["accountId"], tmp_path / "account.gz"
    source.words("accounts", "export", account_id, "--to", str(file))
    half = tmp_path / "half.gz"
    half.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
    code, said = target.refusal("accounts", "import", str(half))
    assert (code, "damaged or not complete" in said) == (1, True)
    first_line = gzip.decompress(file.read_bytes()).splitlines(keepends=True)[0]
    half.write_bytes(gzip.compress(first_line))
    assert target.refusal("accounts", "import", str(half))[0] == 1
    target.words("accounts", "import", str(file))


def test_an_account_goes_through_a_pipe(
    empty_sqlite: Terminal, target: Terminal, tmp_path: Path
) -> None:
    source = empty_sqlite.with_settings(MASTER_KEY=MASTER_KEY)
    account_id = source.json("setup")["accountId"]
    sent = source.run("accounts", "export", account_id, "--to", "-")
    assert sent.exit_code == 0
    assert "Exported account" in sent.stderr
    taken = target.run("accounts", "import", "-", typed=sent.stdout_bytes)
    assert taken.exit_code == 0
    assert f"Imported account {account_id}" in taken.stdout


def test_keys_carry_the_name_of_their_cell(terminal: Terminal) -> None:
    made = terminal.with_settings(CELL="eu1").json("setup")
    assert made["apiKey"].startswith("cpk_eu1_")
    assert made["serviceKey"].startswith("cpk_eu1_")
    # Wherever they are used.
    assert str(terminal.caller_with(made["apiKey"]).account_id) == made["accountId"]
    plain = terminal.json("keys", "create", "--account", made["accountId"])["token"]
    assert plain.removeprefix("cpk_")[:32].isalnum()
    code, said = terminal.with_settings(CELL="Europe West").refusal("accounts", "list")
    assert (code, "CUEPOST_CELL" in said) == (2, True)
