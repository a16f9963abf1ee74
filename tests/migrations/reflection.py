"""What a database says of its own schema, in its own words."""

import re
from typing import Any

import sqlalchemy as sa

Schema = dict[str, Any]

_POSTGRES = {
    "tables": (
        "SELECT relname, relkind, reloptions, pg_get_partkeydef(oid) FROM pg_class "
        "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'S')"
    ),
    "columns": (
        "SELECT attrelid::regclass::text, attname, attnum, format_type(atttypid, atttypmod), "
        "attnotnull, pg_get_expr(adbin, adrelid), attidentity, attgenerated, attcollation "
        "FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
        "LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum "
        "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0"
    ),
    "indexes": (
        "SELECT pg_get_indexdef(indexrelid), indisprimary, indisvalid, reloptions FROM pg_index "
        "JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'public'::regnamespace"
    ),
    "constraints": (
        "SELECT conrelid::regclass::text, conname, contype, pg_get_constraintdef(oid), "
        "convalidated FROM pg_constraint WHERE connamespace = 'public'::regnamespace"
    ),
}


def schema_of(connection: sa.Connection) -> Schema:
    """Everything but the table in which the migrations keep their place."""
    found = _of_postgres(connection) if connection.dialect.name == "postgresql" else None
    return found or _of_sqlite(connection)


def _of_postgres(connection: sa.Connection) -> Schema:
    return {
        kind: sorted(
            repr(tuple(row))
            for row in connection.exec_driver_sql(query)
            if "alembic_version" not in repr(tuple(row))
        )
        for kind, query in _POSTGRES.items()
    }


def _of_sqlite(connection: sa.Connection) -> Schema:
    def rows(sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in connection.exec_driver_sql(sql)]

    tables = rows("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    return {
        name: {
            "columns": rows(f"PRAGMA table_xinfo({name})"),
            "options": [row[2:] for row in rows("PRAGMA table_list") if row[1] == name],
            "indexes": sorted(
                (index, unique, origin, partial, rows(f"PRAGMA index_xinfo({index})"))
                for _, index, unique, origin, partial in rows(f"PRAGMA index_list({name})")
            ),
            "written indexes": sorted(
                rows(
                    "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL "
                    f"AND tbl_name = '{name}'"
                )
            ),
            "constraints": _constraints(sql),
        }
        for name, sql in tables
        if name != "alembic_version"
    }


def _constraints(create_table: str) -> list[str]:
    """One line each, as SQLAlchemy writes them; that of an added column stands behind it."""
    broken = create_table.replace(" CONSTRAINT ", "\nCONSTRAINT ")
    lines = (line.strip() for line in broken.splitlines())
    return sorted(
        re.sub(r"\s+", " ", _first_clause(line)) for line in lines if line.startswith("CONSTRAINT")
    )


def _first_clause(line: str) -> str:
    """Up to the parenthesis that closes it: columns that were added later stand behind it."""
    depth = 0
    for place, sign in enumerate(line):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == ")" and not depth:
            return line[: place + 1]
    return line
