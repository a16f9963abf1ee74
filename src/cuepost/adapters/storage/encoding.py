"""Converts the values of frequently written rows to the form of each driver."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from cuepost.domain.instants import to_millis


@dataclass(frozen=True, slots=True)
class Encoding:
    id: Callable[[UUID], Any]
    instant: Callable[[datetime], Any]
    id_or_none: Callable[[UUID | None], Any]
    instant_or_none: Callable[[datetime | None], Any]


def _same(value: Any) -> Any:
    return value


def _bytes(value: UUID) -> bytes:
    return value.bytes


def _bytes_or_none(value: UUID | None) -> bytes | None:
    return None if value is None else value.bytes


# Cached, because most instants of a batch are equal.
_millis = lru_cache(maxsize=1024)(to_millis)


def _millis_or_none(value: datetime | None) -> int | None:
    return None if value is None else _millis(value)


ON_SQLITE = Encoding(_bytes, _millis, _bytes_or_none, _millis_or_none)
ON_POSTGRES = Encoding(_same, _same, _same, _same)
