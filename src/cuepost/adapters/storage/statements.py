"""Statements that SQLAlchemy writes once for each engine, and that then go straight to the driver.

The busiest calls use them: they are spared what building and running a statement costs each time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from cuepost.adapters.quick_ids import ID_BYTES
from cuepost.adapters.storage.types import Code, Id, Ids, Ints, Texts

Encode = Callable[[Any], Any]
_DIALECTS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+asyncpg"}


def _list_of(kind: sa.types.TypeEngine[Any]) -> sa.types.TypeEngine[Any]:
    if isinstance(kind, Id):
        return Ids()
    return Ints() if isinstance(kind, sa.Integer) else Texts()


class Among(sa.ColumnElement[bool]):
    """The column's value is in a list, which is one parameter however long it is."""

    inherit_cache = False
    # Not Boolean: SQLite has none, and would be asked whether the whole equals 1.
    type: sa.types.TypeEngine[Any] = sa.types.NullType()

    def __init__(self, column: sa.ColumnElement[Any], parameter: str) -> None:
        self.column = column
        self.holds_ids = isinstance(column.type, Id)
        self.listed = sa.bindparam(parameter, type_=_list_of(column.type))


@compiles(Among, "postgresql")
def _(element: Among, compiler: SQLCompiler, **options: Any) -> str:
    column = compiler.process(element.column, **options)
    return f"{column} = ANY ({compiler.process(element.listed, **options)})"


@compiles(Among, "sqlite")
def _(element: Among, compiler: SQLCompiler, **options: Any) -> str:
    column = compiler.process(element.column, **options)
    if not element.holds_ids:
        listed = compiler.process(element.listed, **options)
        return f"{column} IN (SELECT value FROM json_each({listed}))"
    # The parameter is named twice, and each naming takes a place among the parameters.
    length = compiler.process(element.listed, **options)
    source = compiler.process(element.listed, **options)
    return (
        f"{column} IN (WITH RECURSIVE place(n) AS (VALUES (0) UNION ALL SELECT n + {ID_BYTES} "
        f"FROM place WHERE n + {ID_BYTES} < length({length})) "
        f"SELECT substr({source}, n + 1, {ID_BYTES}) FROM place)"
    )


class Pairs(sa.ColumnElement[bool]):
    """Two columns are one of the pairs that are given as two lists of one length; on SQLite."""

    inherit_cache = False
    type: sa.types.TypeEngine[Any] = sa.types.NullType()

    def __init__(
        self, columns: tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]], *parameters: str
    ) -> None:
        self.columns = columns
        self.lists = [
            (sa.bindparam(name, type_=_list_of(column.type)), isinstance(column.type, Id))
            for column, name in zip(columns, parameters, strict=True)
        ]


@compiles(Pairs, "sqlite")
def _(element: Pairs, compiler: SQLCompiler, **options: Any) -> str:
    """Each naming of a parameter takes a place among the parameters."""

    def written(column: sa.ColumnElement[Any]) -> str:
        return compiler.process(column, **options)

    if all(is_id for _, is_id in element.lists):
        (first, _), (second, _) = element.lists
        columns = ", ".join(written(column) for column in element.columns)
        length, firsts, seconds = written(first), written(first), written(second)
        return (
            f"({columns}) IN (WITH RECURSIVE place(n) AS (VALUES (0) UNION ALL "
            f"SELECT n + {ID_BYTES} FROM place WHERE n + {ID_BYTES} < length({length})) "
            f"SELECT substr({firsts}, n + 1, {ID_BYTES}), substr({seconds}, n + 1, {ID_BYTES}) "
            "FROM place)"
        )
    # SQLite compares both columns as it compares the first one, and uses no index for numbers that
    # are compared as text: numbers come second, and text is cast, which leaves it as it is.
    pairs = list(zip(element.columns, element.lists, strict=True))
    if isinstance(element.columns[0].type, sa.Integer):
        pairs.reverse()
    names = ", ".join(written(column) for column, _ in pairs)
    [(_, (first, first_is_id)), (_, (second, _))] = pairs
    if first_is_id:
        leading = written(second)
        values = f"substr({written(first)}, {ID_BYTES} * listed.key + 1, {ID_BYTES}), listed.value"
    else:
        leading = written(first)
        other = f"json_extract({written(second)}, '$[' || listed.key || ']')"
        values = f"CAST(listed.value AS TEXT), {other}"
    return f"({names}) IN (SELECT {values} FROM json_each({leading}) AS listed)"


def looked_up(
    columns: tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]], *parameters: str
) -> sa.ColumnElement[bool]:
    """As `Pairs`, on PostgreSQL: its planner can do nothing but look up each of them.

    To it a list of one is no equality that it could join by, so that it never begins with the whole
    table, however few rows it expects in there. A pair that is given twice is found twice.
    """
    lists = (
        sa.bindparam(name, type_=_list_of(column.type))
        for name, column in zip(parameters, columns, strict=True)
    )
    given = sa.func.unnest(*lists).table_valued("first", "second").render_derived()
    pairs = zip(columns, (given.c.first, given.c.second), strict=True)
    return sa.and_(*(column == sa.any_(postgresql.array([value])) for column, value in pairs))


@dataclass(frozen=True, slots=True)
class Ready:
    """The SQL text, how to write its parameters in their order, and the types of the answer.

    `constants` are parameters that SQLAlchemy has made itself.
    """

    sql: str
    parameters: tuple[tuple[str, Encode | None], ...]
    constants: dict[str, Any]
    answer: tuple[sa.types.TypeEngine[Any], ...]

    @property
    def coded(self) -> tuple[tuple[int, Code], ...]:
        """The places of codes in the answer."""
        return tuple(
            (place, kind) for place, kind in enumerate(self.answer) if isinstance(kind, Code)
        )

    def decoded(self, rows: Sequence[Any]) -> Sequence[Any]:
        """On PostgreSQL, whose driver hands out everything else as it should be."""
        if not rows or not self.coded:
            return rows
        readable = [list(row) for row in rows]
        for place, kind in self.coded:
            for row in readable:
                row[place] = kind.meanings[row[place]]
        return readable

    def encoded(self, values: dict[str, Any]) -> list[Any]:
        known = self.constants | values
        return [
            known[name] if encode is None else encode(known[name])
            for name, encode in self.parameters
        ]


Statement = sa.SelectBase | sa.Insert | sa.Update | sa.Delete | sa.TextClause | sa.TextualSelect
AmongPairs = Callable[..., sa.ColumnElement[bool]]
_AMONG_PAIRS: dict[str, AmongPairs] = {"sqlite": Pairs, "postgresql": looked_up}


class Prepared:
    """Of a statement, or of what makes it from an engine's way to ask for pairs."""

    def __init__(self, statement: Statement | Callable[[AmongPairs], Statement]) -> None:
        self._statement = statement
        self._ready: dict[str, Ready] = {}

    def on(self, dialect: str) -> Ready:
        if dialect not in self._ready:
            made = self._statement
            statement = made(_AMONG_PAIRS[dialect]) if callable(made) else made
            self._ready[dialect] = _compiled(statement, _dialect(_DIALECTS[dialect]))
        return self._ready[dialect]


def _compiled(statement: Statement, dialect: sa.Dialect) -> Ready:
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    names: Sequence[str] = compiled.positiontup or ()
    columns = () if isinstance(statement, sa.TextClause) else statement.exported_columns
    return Ready(
        sql=compiled.string,
        parameters=tuple((name, _encode(compiled.binds[name].type, dialect)) for name in names),
        constants={name: bind.value for name, bind in compiled.binds.items() if not bind.required},
        answer=tuple(column.type for column in columns),
    )


def _encode(kind: sa.types.TypeEngine[Any], dialect: sa.Dialect) -> Encode | None:
    return kind.dialect_impl(dialect).bind_processor(dialect)


def _dialect(name: str) -> sa.Dialect:
    kind: Any = sa.make_url(f"{name}://").get_dialect()
    made: sa.Dialect = kind(dbapi=kind.import_dbapi())
    return made
