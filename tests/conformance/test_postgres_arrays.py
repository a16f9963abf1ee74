"""Arrays are encoded without asking for each element whether it is an array too."""

import sys
from abc import ABCMeta
from types import FrameType
from typing import Any
from uuid import UUID

import pytest

from cuepost.adapters.storage.postgres_connecting import connect

IDS = [UUID(int=number) for number in range(100)]
CHECK = ABCMeta.__instancecheck__.__code__


@pytest.mark.parametrize("given", [IDS, tuple(IDS)], ids=["list", "tuple"])
async def test_elements_are_not_checked_one_by_one(postgres_url: str, given: Any) -> None:
    checks = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal checks
        checks += event == "call" and frame.f_code is CHECK

    driver = await connect(postgres_url)
    try:
        sys.setprofile(note)
        try:
            found = await driver.fetchval("SELECT $1::uuid[]", given)
        finally:
            sys.setprofile(None)
    finally:
        await driver.close()

    assert found == IDS
    assert checks < len(IDS)
