"""The whole service behind a real PgBouncer; a pooler that does not fit is refused at the start."""

from collections.abc import Mapping
from subprocess import CompletedProcess

import pytest

from cuepost.adapters.storage.postgres_pool import SERVER_SETTINGS
from tests.faults.test_database_faults import EVENTS_PER_ROUND, under_load
from tests.support.operator_tools import program
from tests.support.pgbouncer import pgbouncer, version
from tests.support.service_process import free_port, run

HALVES = ("serve", "api", "worker")
KEEPS_STATEMENTS = (1, 21)
# What every connection is opened with where there is no pooler.
IGNORING = {"ignore_startup_parameters": ", ".join(SERVER_SETTINGS)}
REFUSED = "unsupported startup parameter"
IGNORED = "ignores the settings of new connections"
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def migrated(postgres_settings: dict[str, str]) -> dict[str, str]:
    assert run(postgres_settings, "migrate").returncode == 0
    return postgres_settings | {"PORT": str(free_port())}


def test_by_session_nothing_is_lost(postgres_settings: dict[str, str]) -> None:
    """Wake-ups go through the pooler too."""
    with pgbouncer(postgres_settings["DATABASE_URL"], "session") as url:
        pooled = {"DATABASE_URL": url, "DATABASE_POOLER": "session"}
        require_nothing_lost(postgres_settings | pooled)


def test_by_transaction_nothing_is_lost(postgres_settings: dict[str, str]) -> None:
    """With fewer server connections than the processes have clients."""
    direct = postgres_settings["DATABASE_URL"]
    with pgbouncer(direct, "transaction", {"default_pool_size": "8"}) as url:
        require_nothing_lost(postgres_settings | by_transaction(url, direct))


@pytest.mark.parametrize(
    ("pool_mode", "more", "why"),
    [
        ("session", {}, REFUSED),
        ("transaction", {}, REFUSED),
        ("session", IGNORING, IGNORED),
        ("transaction", IGNORING, IGNORED),
    ],
)
def test_a_pooler_that_is_not_configured_is_refused(
    migrated: dict[str, str], pool_mode: str, more: Mapping[str, str], why: str
) -> None:
    with pgbouncer(migrated["DATABASE_URL"], pool_mode, more) as url:
        ended = [run(migrated | {"DATABASE_URL": url}, half) for half in HALVES]
    for each in ended:
        require_one_line(each, why, "set CUEPOST_DATABASE_POOLER to its")


def test_a_pooler_by_transaction_is_no_pooler_by_session(migrated: dict[str, str]) -> None:
    with pgbouncer(migrated["DATABASE_URL"], "transaction") as url:
        ended = run(migrated | {"DATABASE_URL": url, "DATABASE_POOLER": "session"}, "serve")
    require_one_line(
        ended,
        "assigns server connections by transaction",
        "set CUEPOST_DATABASE_POOLER=transaction and CUEPOST_DATABASE_DIRECT_URL",
    )


def test_prepared_statements_work_or_are_refused(migrated: dict[str, str]) -> None:
    """Whichever version of PgBouncer there is."""
    keeps_them = version(program("pgbouncer")) >= KEEPS_STATEMENTS
    more = {"max_prepared_statements": "600"} if keeps_them else {}
    direct = migrated["DATABASE_URL"]
    with pgbouncer(direct, "transaction", more) as url:
        prepared = migrated | by_transaction(url, direct, "transaction-prepared")
        if keeps_them:
            require_nothing_lost(prepared)
            return
        ended = run(prepared, "serve")
    require_one_line(
        ended, "does not keep prepared statements", "set CUEPOST_DATABASE_POOLER=transaction"
    )


def test_prepared_statements_without_a_pooler(postgres_settings: dict[str, str]) -> None:
    """Nothing relies on what a connection keeps, statements apart."""
    direct = postgres_settings["DATABASE_URL"]
    require_nothing_lost(postgres_settings | by_transaction(direct, direct, "transaction-prepared"))


def by_transaction(url: str, direct: str, pooler: str = "transaction") -> dict[str, str]:
    return {"DATABASE_URL": url, "DATABASE_POOLER": pooler, "DATABASE_DIRECT_URL": direct}


def require_nothing_lost(settings: dict[str, str]) -> None:
    with under_load(settings, HALVES) as case:
        case.load.wait_for(EVENTS_PER_ROUND)
        case.require_all_well()


def require_one_line(ended: "CompletedProcess[str]", *parts: str) -> None:
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    for part in parts:
        assert part in ended.stderr
