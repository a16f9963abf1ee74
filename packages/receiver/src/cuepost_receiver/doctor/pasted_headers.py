"""Reads pasted headers: lines of text, `curl -H` options or a JSON object."""

import json
import re

_LINE = re.compile(r"""^(?:-H\s+)?['"]?([!#$%&*+.^_`|~0-9A-Za-z-]+)\s*[:=]\s*(.*)$""")


def read_headers(text: str) -> list[tuple[str, str]]:
    """Names and values in their order; other lines are ignored."""
    pasted = _json_object(text)
    if pasted is not None:
        return pasted
    matches = (_LINE.match(line.strip()) for line in text.splitlines())
    return [(found[1], _bare(found[2])) for found in matches if found]


def _bare(value: str) -> str:
    """Without the marks that shells and JSON put at the end of a line.

    Not a part of the pattern, which would then try each space of a long run.
    """
    value = value.removesuffix("\\").rstrip().removesuffix(",")
    return (value[:-1] if value.endswith(("'", '"')) else value).strip()


def _json_object(text: str) -> list[tuple[str, str]] | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    return [(name, value) for name, value in parsed.items() if isinstance(value, str)]
