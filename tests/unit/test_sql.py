"""Statements as each engine gets them, their parameters, and what is read of their results."""

import sqlite3
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuepost.adapters.quick_ids import id_from
from cuepost.adapters.storage.codes import BY_TYPE, EVENT_TYPE, STATUS
from cuepost.adapters.storage.sql import Dialect, Sql, Written, by_keys, statement
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import CancelReason, DeliveryStatus, Trigger
from cuepost.domain.instants import to_millis
from cuepost.testing import START

IDS = [UUID(int=number) for number in range(1, 5)]
ENGINES: tuple[Dialect, ...] = ("sqlite", "postgresql")
TABLE = """
CREATE TABLE queue (account INTEGER, id BLOB, status INTEGER, "key" TEXT, PRIMARY KEY (account, id))
"""
ROWS = [
    (1, IDS[0], DeliveryStatus.PENDING, "a"),
    (1, IDS[1], DeliveryStatus.DELIVERING, "b"),
    (2, IDS[2], DeliveryStatus.RETRYING, 'c"'),
]


def on(sql: Sql, dialect: Dialect) -> Written:
    return sql.sqlite if dialect == "sqlite" else sql.postgresql


def described(dialect: Dialect, *names: str) -> Written:
    """A statement that returns these columns."""
    written = on(Sql("SELECT"), dialect)
    written.describe(names)
    return written


@pytest.fixture
def driver() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:")
    made.execute(TABLE)
    adding = Sql('INSERT INTO queue (account, id, status, "key") VALUES (:account, :id, :s, :k)')
    for account, id_, status, key in ROWS:
        named = {"account": account, "id": id_, "s": status, "k": key}
        made.execute(adding.sqlite.text, adding.sqlite.values(named))
    return made


def run(driver: sqlite3.Connection, sql: Sql, **named: Any) -> Sequence[Any]:
    """Both texts of the statement find the same, if it has one for lists of one."""
    found = []
    for written in (sql.on_sqlite(named), sql.sqlite):
        cursor = driver.execute(written.text, written.values(named))
        written.describe([name for name, *_ in cursor.description])
        found.append(written.read(cursor.fetchall()))
    assert found[0] == found[1]
    return found[0]


def keys(driver: sqlite3.Connection, condition: str, **named: Any) -> str:
    """The keys of the rows that meet the condition."""
    rows = run(driver, Sql(f'SELECT "key" FROM queue WHERE {condition} ORDER BY 1'), **named)
    return "".join(key[0] for (key,) in rows)


def test_a_parameter_that_is_named_twice_is_given_once() -> None:
    sql = Sql("SELECT id FROM queue WHERE a = :b AND c = :d AND e < :b")
    named = {"d": 1, "b": 2}
    assert sql.sqlite.text == "SELECT id FROM queue WHERE a = ?1 AND c = ?2 AND e < ?1"
    assert sql.postgresql.text == "SELECT id FROM queue WHERE a = $1 AND c = $2 AND e < $1"
    for dialect in ENGINES:
        assert on(sql, dialect).values(named) == [2, 1]


def test_a_statement_is_written_once_for_each_engine() -> None:
    sql = Sql(sqlite="SELECT 1", postgresql="SELECT 2")
    assert [on(sql, dialect).text for dialect in ENGINES] == ["SELECT 1", "SELECT 2"]
    for dialect in ENGINES:
        assert on(sql, dialect) is on(sql, dialect)
    assert statement("SELECT 3") is statement("SELECT 3")


@pytest.mark.parametrize(
    ("value", "on_sqlite"),
    [
        (IDS[0], IDS[0].bytes),
        (id_from(IDS[0].bytes), IDS[0].bytes),
        (START + timedelta(milliseconds=7), to_millis(START) + 7),
        *((value, value) for value in (None, 3, 0.5, "text", b"bytes", True)),
    ],
)
def test_ids_and_instants_are_converted_for_sqlite_alone(value: Any, on_sqlite: Any) -> None:
    sql = Sql("SELECT :value")
    [found] = sql.sqlite.values({"value": value})
    assert (found, type(found)) == (on_sqlite, type(on_sqlite))
    [found] = sql.postgresql.values({"value": value})
    assert found is value


@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("members", BY_TYPE)
def test_members_of_closed_lists_become_their_codes(dialect: Dialect, members: Any) -> None:
    written = on(Sql("SELECT :value"), dialect)
    codes = BY_TYPE[members].codes
    found = [written.values({"value": member}) for member in members]
    assert found == [[codes[member]] for member in members]
    assert all(type(code) is int for [code] in found)


@pytest.mark.parametrize("listed", [list, tuple, set, dict.fromkeys])
def test_a_list_of_ids_is_one_parameter(driver: sqlite3.Connection, listed: Any) -> None:
    few = listed([IDS[0], id_from(IDS[2].bytes), IDS[3]])
    assert keys(driver, "id IN :ids", ids=few) == "ac"
    assert keys(driver, "queue.id NOT IN :ids", ids=few) == "b"
    for_postgres = Sql("SELECT 1 FROM queue WHERE queue.id IN :ids AND id NOT IN :others")
    written = for_postgres.postgresql
    assert written.text == "SELECT 1 FROM queue WHERE queue.id = ANY ($1) AND id <> ALL ($2)"
    assert written.values({"ids": few, "others": few}) == [list(few), list(few)]


def test_a_list_of_numbers_codes_or_texts_is_one_parameter(driver: sqlite3.Connection) -> None:
    waiting = [DeliveryStatus.PENDING, DeliveryStatus.RETRYING]
    assert keys(driver, "account IN :accounts", accounts={1, 7}) == "ab"
    assert keys(driver, "account NOT IN :accounts", accounts=[1]) == "c"
    assert keys(driver, "status IN :waiting", waiting=waiting) == "ac"
    assert keys(driver, "status NOT IN :waiting", waiting=waiting) == "b"
    assert keys(driver, '"key" IN :texts', texts=["a", 'c"', "'"]) == "ac"
    assert keys(driver, 'queue."key" NOT IN :texts', texts=['c"']) == "ab"
    written = Sql('SELECT 1 WHERE status IN :waiting AND q."key" NOT IN :texts').postgresql
    assert written.text == 'SELECT 1 WHERE status = ANY ($1) AND q."key" <> ALL ($2)'
    codes = [STATUS[each] for each in waiting]
    assert written.values({"waiting": waiting, "texts": {"a"}}) == [codes, ["a"]]


@pytest.mark.parametrize("column", ["id", "account", '"key"'])
def test_nothing_is_in_an_empty_list(driver: sqlite3.Connection, column: str) -> None:
    assert keys(driver, f"{column} IN :none", none=[]) == ""
    assert keys(driver, f"{column} NOT IN :none", none=()) == "abc"


@pytest.mark.parametrize("listed", [list, tuple, set, frozenset, dict.fromkeys])
def test_a_list_of_one_on_sqlite_is_a_value(driver: sqlite3.Connection, listed: Any) -> None:
    sql = Sql("SELECT 1 FROM queue WHERE queue.id IN :ids AND status NOT IN :others FOR UPDATE")
    one: dict[str, Any] = {"ids": listed(IDS[:1]), "others": listed([DeliveryStatus.RETRYING])}
    written = sql.on_sqlite(one)
    assert written.text.strip() == "SELECT 1 FROM queue WHERE queue.id = ?1 AND status IS NOT ?2"
    assert written.values(one) == [IDS[0].bytes, 3]
    none = {"ids": listed([]), "others": listed([])}
    assert (sql.on_sqlite(none), written.values(none)) == (written, [None, None])
    for name, several in (("ids", IDS[:2]), ("others", list(DeliveryStatus)[:2])):
        assert sql.on_sqlite(one | {name: listed(several)}) is sql.sqlite
    assert keys(driver, "id IN :ids", ids=listed([IDS[1]])) == "b"
    assert keys(driver, "account NOT IN :accounts", accounts=listed([2])) == "ab"
    assert keys(driver, "account NOT IN :accounts", accounts=listed([])) == "abc"


def test_a_text_of_its_own_for_lists_of_one() -> None:
    sql = Sql(sqlite="SELECT json_each(:ids)", sqlite_of_one="SELECT 1 WHERE id IN :ids")
    assert sql.on_sqlite({"ids": IDS[:1]}).text == "SELECT 1 WHERE id = ?1"
    assert sql.on_sqlite({"ids": IDS[:2]}).text == "SELECT json_each(?1)"
    without_lists = Sql("SELECT :value")
    assert without_lists.on_sqlite({"value": 1}) is without_lists.sqlite


def test_a_query_behind_in_is_left_as_it_is(driver: sqlite3.Connection) -> None:
    asked = "id NOT IN (SELECT id FROM queue WHERE account = :account)"
    assert keys(driver, asked, account=1) == "c"
    expected = f"SELECT 1 WHERE {asked}".replace(":account", "$1")
    assert Sql(f"SELECT 1 WHERE {asked}").postgresql.text == expected


def test_a_list_elsewhere_is_one_value(driver: sqlite3.Connection) -> None:
    each = Sql("SELECT value AS number FROM json_each(:numbers)")
    assert run(driver, each, numbers=[3, 1]) == [(3,), (1,)]
    assert run(driver, each, numbers=(DeliveryStatus.RETRYING,)) == [(3,)]
    assert run(driver, each, numbers=[]) == []
    assert run(driver, Sql("SELECT substr(:ids, 17, 16) AS id"), ids=IDS) == [[IDS[1]]]
    unnested = Sql("SELECT unnest(:ids::uuid[])").postgresql
    assert unnested.values({"ids": IDS}) == [IDS]


def test_casts_are_for_postgresql() -> None:
    sql = Sql("SELECT :a::uuid, :b::integer[], :c::double precision, d::text FROM unnest(:b)")
    assert sql.sqlite.text == "SELECT ?1, ?2, ?3, d FROM unnest(?2)"
    written = "SELECT $1::uuid, $2::integer[], $3::double precision, d::text FROM unnest($2)"
    assert sql.postgresql.text == written


@pytest.mark.parametrize("of", ["", " OF queue", " OF queue, events"])
@pytest.mark.parametrize("others", ["", " SKIP LOCKED", " NOWAIT"])
@pytest.mark.parametrize("lock", ["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"])
def test_row_locks_are_for_postgresql(lock: str, others: str, of: str) -> None:
    text = f"SELECT id FROM (SELECT id FROM queue FOR {lock}{of}{others}) AS locked"
    assert Sql(text).postgresql.text == text
    assert Sql(text).sqlite.text == "SELECT id FROM (SELECT id FROM queue ) AS locked"


READ = {
    "id": (IDS[0].bytes, IDS[0], IDS[0]),
    "due_at": (to_millis(START), START, START),
    "status": (3, 3, DeliveryStatus.RETRYING),
    "stop_reason": (2, 2, CancelReason.PROJECT_DELETED),
    "trigger": (2, 2, Trigger.MANUAL),
    "event_type": (1, 1, EVENT_TYPE.listed[0]),
    # A retired code.
    "outcome": (5, 5, Outcome.BLOCKED_DESTINATION),
    "accepts": (1, True, True),
    "details": ('{"a": [1]}', '{"a": [1]}', {"a": [1]}),
    "count": (12, 12, 12),
    "nothing_known": ("x", "x", "x"),
}


@pytest.mark.parametrize("name", READ)
def test_results_are_converted_by_the_names_of_their_columns(name: str) -> None:
    on_sqlite, on_postgres, meant = READ[name]
    for dialect, stored in zip(ENGINES, (on_sqlite, on_postgres), strict=True):
        rows = described(dialect, name).read([(stored,), (None,), (stored,)])
        assert [tuple(row) for row in rows] == [(meant,), (None,), (meant,)]
        assert {type(row[0]) for row in (rows[0], rows[2])} == {type(meant)} or name == "id"


@pytest.mark.parametrize("dialect", ENGINES)
def test_columns_keep_their_places_and_may_share_a_name(dialect: Dialect) -> None:
    rows = [(1, "a", 3, 1), (2, "b", None, 2)]
    found = described(dialect, "number", "name", "status", "status").read(rows)
    assert [tuple(row) for row in found] == [
        (1, "a", DeliveryStatus.RETRYING, DeliveryStatus.PENDING),
        (2, "b", None, DeliveryStatus.DELIVERING),
    ]


@pytest.mark.parametrize("dialect", ENGINES)
def test_what_needs_no_conversion_is_not_copied(dialect: Dialect) -> None:
    rows: list[tuple[Any, ...]] = [(1, "a")]
    assert described(dialect, "number", "name").read(rows) is rows
    rows.clear()
    assert described(dialect, "status").read(rows) is rows


def test_pairs_are_given_as_two_lists(driver: sqlite3.Connection) -> None:
    found = by_keys('SELECT "key" FROM queue', "account", "id", "AND status != :status ORDER BY 1")
    chosen = {"accounts": [1, 2, 2, 1, 1], "deliveries": [IDS[0], IDS[0], IDS[2], IDS[0], IDS[1]]}
    rows = run(driver, found, **chosen, status=DeliveryStatus.DELIVERING)
    assert rows == [("a",), ('c"',)]
    assert run(driver, found, accounts=[], deliveries=[], status=None) == []


def test_each_pair_is_looked_up_by_the_key_of_the_table(driver: sqlite3.Connection) -> None:
    found = by_keys("SELECT status FROM queue", "queue.account", "queue.id").sqlite
    values = found.values({"accounts": [1], "deliveries": IDS[:1]})
    plan = [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {found.text}", values)]
    assert any(step.startswith("SEARCH queue") and "account=? AND id=?" in step for step in plan)


def test_pairs_on_postgresql_are_lists_of_one() -> None:
    written = by_keys("SELECT 1 FROM queue", "a", "b", lists=("numbers", "events")).postgresql
    assert " ".join(written.text.split()) == (
        "SELECT 1 FROM queue, unnest($1::integer[], $2::uuid[]) AS given (given_number, given_id) "
        "WHERE a = ANY (ARRAY[given_number]) AND b = ANY (ARRAY[given_id])"
    )
    assert written.values({"numbers": [1], "events": IDS[:1]}) == [[1], IDS[:1]]


def test_an_equality_that_can_only_be_looked_up() -> None:
    statement = Sql("SELECT 1 FROM events JOIN queue ON events.id == queue.event_id")
    assert statement.postgresql.text.endswith("events.id = ANY (ARRAY[queue.event_id])")
    assert statement.sqlite.text.endswith("events.id == queue.event_id")
