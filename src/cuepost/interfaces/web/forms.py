"""Submitted forms, read strictly and within limits."""

from collections.abc import Iterable
from urllib.parse import parse_qsl

from starlette.requests import Request

MOST_BYTES = 256 * 1024
MOST_FIELDS = 200


class BadForm(Exception):
    """The form is too large, or is not one."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


class Form:
    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def text(self, name: str, otherwise: str = "") -> str:
        return self._values.get(name, [otherwise])[-1]

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def __contains__(self, name: str) -> bool:
        return name in self._values


async def read_form(request: Request) -> Form:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise BadForm
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except ValueError:
        raise BadForm from None
    if any(_unstorable(value) for pair in pairs for value in pair):
        raise BadForm
    return Form(pairs)


def _unstorable(text: str) -> bool:
    return "\x00" in text
