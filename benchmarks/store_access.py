"""Fills and reads a store with the code of one source tree; run as a program in that tree.

`benchmarks.checkout` starts it and sends requests. Requests and answers are pickled and contain
only plain values, since the classes of two trees may differ. It needs three functions of a tree
with these names and arguments; keep them when you change this tree.
"""

import asyncio
import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Any
from uuid import UUID

from benchmarks import proof

try:
    from benchmarks.population import populate as fill
except ModuleNotFoundError:
    # In commits before 4a409c6.
    fill = import_module("benchmarks.furnishing").furnish


def populate(settings: Mapping[str, str], urls: Mapping[str, str], projects: int) -> dict[str, Any]:
    return asdict(asyncio.run(fill(settings, urls, projects)))


def wait_until_settled(settings: Mapping[str, str], accounts: Sequence[UUID]) -> None:
    proof.wait_until_settled(settings, accounts)


def stored_since(
    settings: Mapping[str, str], accounts: Sequence[UUID], since: float
) -> list[dict[str, Any]]:
    return [asdict(each) for each in proof.stored_since(settings, accounts, since)]


def main() -> None:
    # Opened with buffers: unbuffered, as some environments set it, a pipe may accept only a part.
    questions = os.fdopen(os.dup(0), "rb")
    answers, sys.stdout = os.fdopen(os.dup(1), "wb"), sys.stderr
    known = {each.__name__: each for each in (populate, wait_until_settled, stored_since)}
    while True:
        try:
            question, arguments = pickle.load(questions)
        except EOFError:
            return
        pickle.dump(known[question](*arguments), answers)
        answers.flush()


if __name__ == "__main__":
    main()
