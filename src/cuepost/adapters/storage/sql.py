"""Statements as this package writes them, and their translation for each engine.

One text serves both engines, with a few notations that are translated:

- `:name` is a parameter. Values are converted by their Python type.
- `column IN :names` and `column NOT IN :names` take a list, which is one parameter of any length.
  The column's name determines the type of the members. With NOT IN the column must not be NULL.
  On SQLite there is a second text, for lists with no more than one member.
- `:name::type` gives PostgreSQL a type that it cannot infer; SQLite needs none.
- `column == value` becomes a comparison with a list of one, which PostgreSQL's planner can only
  look up in an index and never use for a hash or merge join, however few rows it expects.
- `FOR UPDATE` and other row locks apply to PostgreSQL only; SQLite has one writer.

Results are converted by the names of their columns (see `columns.py`).
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, Literal, TypeAlias
from uuid import UUID

import msgspec

from cuepost.adapters.quick_ids import ID_BYTES, id_from
from cuepost.adapters.storage.codes import BY_TYPE
from cuepost.adapters.storage.columns import (
    ID,
    KINDS,
    ColumnType,
    Convert,
    Converters,
    bytes_of,
    cached_millis,
    converted,
)

Dialect: TypeAlias = Literal["sqlite", "postgresql"]
# Tuples, or records of asyncpg.
Rows: TypeAlias = Sequence[Any]

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_CAST = re.compile(r"::[a-z]+(?: precision)?(?:\[\])?")
_LIST = re.compile(r"((?:\w+\.)?\"?(\w+)\"?) (NOT )?IN :([a-z_]+)")
_LOOK_UP = re.compile(r"([\w.]+) == ([\w.]+)")
_ROW_LOCK = re.compile(
    r"\bFOR (?:NO KEY UPDATE|UPDATE|KEY SHARE|SHARE)"
    r"(?: OF \w+(?:, \w+)*)?(?: SKIP LOCKED| NOWAIT)?"
)


class Sql:
    """A statement: one text, or one for each engine if they differ too much."""

    def __init__(
        self, text: str = "", *, sqlite: str = "", sqlite_of_one: str = "", postgresql: str = ""
    ) -> None:
        """`sqlite_of_one` compares columns with single values instead of the same lists."""
        self._sqlite = sqlite or text
        self._sqlite_of_one = sqlite_of_one
        self._postgresql = postgresql or text

    @cached_property
    def sqlite(self) -> "Written":
        return _on_sqlite(self._sqlite)

    @cached_property
    def sqlite_of_one(self) -> "Written | None":
        """For lists of one member or none: SQLite makes a table of every list, which takes longer
        than to read a row."""
        return _on_sqlite_of_one(self._sqlite_of_one or self._sqlite)

    def on_sqlite(self, values: Mapping[str, Any]) -> "Written":
        of_one = self.sqlite_of_one
        if of_one is None or any(len(values[name]) > 1 for name in of_one.lists):
            return self.sqlite
        return of_one

    @cached_property
    def postgresql(self) -> "Written":
        return _on_postgres(self._postgresql)


@cache
def statement(text: str) -> Sql:
    """The statement of a text that is built for each call; there are few different texts."""
    return Sql(text)


@dataclass(frozen=True, slots=True)
class Engine:
    """How a driver marks parameters and converts values."""

    mark: str
    values: Mapping[type, Convert]
    reader: Callable[[ColumnType], Convert | None]


class Written:
    """A statement for one engine, with its parameters and conversions."""

    def __init__(self, text: str, lists: Mapping[str, Convert], engine: Engine) -> None:
        """`lists` has the conversions of the parameters that are lists."""
        names = list(dict.fromkeys(_PARAMETER.findall(text)))
        self.lists = tuple(lists)
        self.text = _PARAMETER.sub(lambda found: f"{engine.mark}{names.index(found[1]) + 1}", text)
        self._engine = engine
        self._parameters = [(name, lists.get(name)) for name in names]
        # Known once a driver has described the columns.
        self.readers: Converters | None = None

    def values(self, named: Mapping[str, Any]) -> list[Any]:
        """The values in the driver's order."""
        by_type, ordered = self._engine.values, []
        for name, listed in self._parameters:
            value = named[name]
            convert = listed or by_type.get(type(value))
            ordered.append(value if convert is None else convert(value))
        return ordered

    def describe(self, names: Iterable[str]) -> None:
        """The columns of the rows that the statement returns."""
        found = ((place, self._reader_of(name)) for place, name in enumerate(names))
        self.readers = [(place, reader) for place, reader in found if reader is not None]

    def read(self, rows: Rows) -> Rows:
        """The rows with values of the domain's types."""
        if not rows or not self.readers:
            return rows
        return converted(rows, self.readers)

    def _reader_of(self, name: str) -> Convert | None:
        kind = KINDS.get(name)
        return None if kind is None else self._engine.reader(kind)


def _on_sqlite(text: str) -> Written:
    lists: dict[str, Convert] = {}

    def listed(found: re.Match[str]) -> str:
        column, name, inverted, parameter = found.groups()
        holds_ids = KINDS.get(name) is ID
        lists[parameter] = packed_ids if holds_ids else packed
        source = sqlite_ids(parameter) if holds_ids else sqlite_values(parameter)
        return f"{column} {inverted or ''}IN ({source})"

    plain = _CAST.sub("", _ROW_LOCK.sub("", text))
    return Written(_LIST.sub(listed, plain), lists, _SQLITE)


def _on_sqlite_of_one(text: str) -> Written | None:
    """None if nothing is compared with a list."""
    lists: dict[str, Convert] = {}

    def compared(found: re.Match[str]) -> str:
        column, _, inverted, parameter = found.groups()
        lists[parameter] = _only
        return f"{column} {'IS NOT' if inverted else '='} :{parameter}"

    of_one = _LIST.sub(compared, _CAST.sub("", _ROW_LOCK.sub("", text)))
    return Written(of_one, lists, _SQLITE) if lists else None


def _on_postgres(text: str) -> Written:
    lists: dict[str, Convert] = {}

    def listed(found: re.Match[str]) -> str:
        column, _, inverted, parameter = found.groups()
        lists[parameter] = _coded_list
        return f"{column} {'<> ALL' if inverted else '= ANY'} (:{parameter})"

    looked_up = _LOOK_UP.sub(r"\1 = ANY (ARRAY[\2])", text)
    return Written(_LIST.sub(listed, looked_up), lists, _POSTGRES)


def sqlite_ids(parameter: str) -> str:
    """A query for the ids of a list on SQLite, where they are concatenated in one value.

    An empty list yields no row, not even NULL, so that every id is NOT IN it.
    """
    return (
        f"WITH RECURSIVE place(n) AS (SELECT 0 WHERE length(:{parameter}) > 0 "
        f"UNION ALL SELECT n + {ID_BYTES} FROM place WHERE n + {ID_BYTES} < length(:{parameter})) "
        f"SELECT substr(:{parameter}, n + 1, {ID_BYTES}) FROM place"
    )


def sqlite_values(parameter: str) -> str:
    """A query for the numbers or texts of a list on SQLite."""
    return f"SELECT value FROM json_each(:{parameter})"


def by_keys(
    found: str,
    number: str,
    identifier: str,
    then: str = "",
    *,
    lists: tuple[str, str] = ("accounts", "deliveries"),
) -> Sql:
    """Rows whose columns `number` and `identifier` are one of the pairs given as two lists.

    `found` is a query up to its FROM, and `then` is what follows the condition.
    """
    numbers, ids = lists
    return Sql(
        # SQLite compares both columns with the affinity of the first, and uses no index for ids
        # that are compared as numbers, so ids come first.
        sqlite=f"""
        {found}
        WHERE ({identifier}, {number}) IN (
            SELECT substr(:{ids}, {ID_BYTES} * listed.key + 1, {ID_BYTES}), listed.value
            FROM json_each(:{numbers}) AS listed
        ) {then}
        """,
        # A pair that is given twice yields its row twice.
        postgresql=f"""
        {found}, unnest(:{numbers}::integer[], :{ids}::uuid[]) AS given (given_number, given_id)
        WHERE {number} == given_number AND {identifier} == given_id {then}
        """,
    )


def quoted(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def packed_ids(ids: Iterable[UUID]) -> bytes:
    return b"".join(each.bytes for each in ids)


def packed(values: Iterable[Any]) -> str:
    """A list of numbers or texts."""
    return _JSON.encode(_coded_list(values)).decode()


def _coded_list(values: Iterable[Any]) -> list[Any]:
    """All members are of one type."""
    listed = list(values)
    code = _CODES.get(type(listed[0])) if listed else None
    return listed if code is None else [code(value) for value in listed]


def _only(values: Collection[Any]) -> Any:
    """The member, or NULL, which equals nothing and differs from every value."""
    for value in values:
        convert = _SQLITE.values.get(type(value))
        return value if convert is None else convert(value)
    return None


def _list_on_sqlite(values: Sequence[Any]) -> Any:
    """An empty list matches nothing in either form."""
    return packed_ids(values) if values and type(values[0]) in _IDS else packed(values)


_JSON = msgspec.json.Encoder()
_CODES: Mapping[type, Convert] = {each: codes.codes.__getitem__ for each, codes in BY_TYPE.items()}
# Ids that were read from a database are of the driver's own UUID class.
_IDS = (UUID, type(id_from(bytes(ID_BYTES))))
_SQLITE = Engine(
    mark="?",
    values={
        **_CODES,
        **dict.fromkeys(_IDS, bytes_of),
        datetime: cached_millis,
        list: _list_on_sqlite,
        tuple: _list_on_sqlite,
    },
    reader=attrgetter("from_sqlite"),
)
_POSTGRES = Engine(mark="$", values=_CODES, reader=attrgetter("from_postgres"))
