"""The audit trail as a file: CSV for spreadsheets, or JSON lines for programs."""

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from cuepost.application.search_audit import Trail
from cuepost.domain.audit import AuditEntry
from cuepost.interfaces.wire_models.audit import AuditEntry as ShownEntry

COLUMNS = ShownEntry.__struct_encode_fields__
# A spreadsheet takes a cell that begins with one of these for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
CUT = "The export ends here although there are older entries; filter by an earlier time for them."


@dataclass(frozen=True, slots=True)
class Format:
    label: str
    media_type: str
    head: str
    lines: Callable[[Sequence[AuditEntry]], str]
    cut: str


async def written(name: str, parts: AsyncIterator[Trail]) -> AsyncIterator[str]:
    """If the trail is longer than its parts, the last line says so."""
    chosen, further = FORMATS[name], None
    head = chosen.head
    async for part in parts:
        yield head + chosen.lines(part.entries)
        head, further = "", part.further
    if further is not None:
        yield chosen.cut


def _rows(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _csv(entries: Sequence[AuditEntry]) -> str:
    return _rows([_cells(msgspec.to_builtins(ShownEntry.of(each))) for each in entries])


def _cells(shown: Mapping[str, object]) -> list[str]:
    return [_cell(shown[name]) for name in COLUMNS]


def _cell(value: object) -> str:
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False) if value else ""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def _json_lines(entries: Sequence[AuditEntry]) -> str:
    return "".join(f"{msgspec.json.encode(ShownEntry.of(each)).decode()}\n" for each in entries)


FORMATS: Mapping[str, Format] = {
    "csv": Format("CSV", "text/csv; charset=utf-8", _rows([COLUMNS]), _csv, _rows([[CUT]])),
    "jsonl": Format(
        "JSON lines", "application/jsonl", "", _json_lines, f"{json.dumps({'cut': CUT})}\n"
    ),
}
