"""What a migration may say to PostgreSQL while services of the version before run.

CONTRIBUTING.md has the rules in words.
"""

import re
from collections.abc import Iterator, Sequence

_CREATED = re.compile(r"^CREATE TABLE (?:IF NOT EXISTS )?(\w+)", re.IGNORECASE)
_CHANGED = re.compile(
    r"^(?:ALTER TABLE (?:IF EXISTS |ONLY )*|CREATE (?:UNIQUE )?INDEX .* ON (?:ONLY )?"
    r"|UPDATE (?:ONLY )?|DELETE FROM (?:ONLY )?|LOCK TABLE (?:ONLY )?|TRUNCATE (?:TABLE )?)(\w+)",
    re.IGNORECASE,
)
# Code of the version before would fail, or write what is refused.
_BREAKING = (
    r"DROP (TABLE|COLUMN|DEFAULT)",
    r"\bRENAME\b",
    r"ALTER COLUMN .* TYPE\b",
    r"SET NOT NULL",
    r"ADD COLUMN (?!.*\bDEFAULT\b).*NOT NULL",
    r"\bADD (CONSTRAINT|CHECK|UNIQUE|PRIMARY|FOREIGN|EXCLUDE)\b",
    r"^CREATE UNIQUE INDEX",
)
# Writers would wait as long as the statement takes on a large table.
_BLOCKING = (
    r"^CREATE (UNIQUE )?INDEX (?!CONCURRENTLY)(?!.* ON ONLY )",
    r"ALTER COLUMN .* TYPE\b",
    r"SET NOT NULL",
    # It may be one that every row has to be written for.
    r"ADD COLUMN .*\bDEFAULT\b[^,]*\(",
    r"\bADD (CONSTRAINT|CHECK|UNIQUE|PRIMARY|FOREIGN|EXCLUDE)\b(?!.*NOT VALID)",
    r"^(UPDATE|DELETE|LOCK|TRUNCATE|CLUSTER|VACUUM)\b",
)


def broken_rules(
    statements: Sequence[str], *, is_for_older: bool, is_online: bool
) -> Iterator[str]:
    """`is_for_older` if code that could run before can run afterwards; `is_online` if any can."""
    lines = [" ".join(each.split()) for each in statements]
    created = {found[1] for line in lines if (found := _CREATED.match(line))}
    on_others = [line for line in lines if _table(line) not in created]
    for line in on_others:
        if is_for_older and _any(_BREAKING, line):
            yield f"older code cannot go on: {line}"
        if is_online and _any(_BLOCKING, line):
            yield f"writers wait for it: {line}"
    locked = {_table(line) for line in on_others if line.upper().startswith("ALTER TABLE")}
    if is_online and len(locked) > 1:
        yield f"several tables are locked at once: {sorted(map(str, locked))}"


def _table(line: str) -> str | None:
    found = _CHANGED.match(line)
    return found[1] if found else None


def _any(patterns: Sequence[str], line: str) -> bool:
    return any(re.search(pattern, line, re.IGNORECASE) for pattern in patterns)
