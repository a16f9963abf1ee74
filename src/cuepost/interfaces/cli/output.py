"""Output of commands: JSON objects, or tables and sentences."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click
import msgspec

from cuepost.domain.access import Account, ApiKey
from cuepost.domain.instants import to_text
from cuepost.interfaces.wire_models.accounts import Account as ShownAccount

Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def print_result(as_json: bool, content: Mapping[str, Any], words: str) -> None:
    click.echo(json.dumps(content, ensure_ascii=False) if as_json else words)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [[_printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    lines = [click.style(_line(headings, widths), bold=True)]
    return "\n".join(lines + [_line(row, widths) for row in cells])


def key_values(known: Mapping[str, str]) -> str:
    """Names and values in two indented columns."""
    width = max(map(len, known))
    return "\n".join(
        f"  {name:<{width}}  " + click.style(_printable(value), fg="cyan")
        for name, value in known.items()
    )


def refusal_reason(result: Mapping[str, Any]) -> str:
    """Why a milestone was not accepted: the reason, and the errors of its fields."""
    errors = [f"{each['field']}: {each['message']}" for each in result.get("errors", ())]
    return _printable(" ".join([f"{result['reason']}.", *errors]))


def time_text(instant: datetime | None, never: str = "-") -> str:
    return to_text(instant) if instant else never


def account_json(account: Account) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.to_builtins(ShownAccount.of(account))
    return content


def access_state(account: Account) -> str:
    return "open" if account.webhooks_enabled else "closed"


def key_json(key: ApiKey) -> dict[str, Any]:
    return {
        "id": str(key.id),
        "accountId": str(key.account_id) if key.account_id else None,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "createdAt": to_text(key.created_at),
        "expiresAt": to_text(key.expires_at) if key.expires_at else None,
        "revokedAt": to_text(key.revoked_at) if key.revoked_at else None,
        "lastUsedAt": to_text(key.last_used_at) if key.last_used_at else None,
    }


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()


def _printable(text: str) -> str:
    """Replace control characters, which could move the cursor of the terminal."""
    return "".join(each if each.isprintable() else "�" for each in text)
