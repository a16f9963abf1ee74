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

    def id_or_none(self, value: UUID | None) -> Any:
        return None if value is None else self.id(value)

    def instant_or_none(self, value: datetime | None) -> Any:
        return None if value is None else self.instant(value)


def _same(value: Any) -> Any:
    return value


def _bytes(value: UUID) -> bytes:
    return value.bytes


# Cached, because most instants of a batch are equal.
ON_SQLITE = Encoding(_bytes, lru_cache(maxsize=1024)(to_millis))
ON_POSTGRES = Encoding(_same, _same)
