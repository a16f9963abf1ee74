"""`make mutation`: mutates the most important code in every small way, and checks that tests fail.

Each mutant is one change in one place: another comparison, number or text, a missing row of a
table, a missing raise. A mutant that no test detects is a gap in the tests, unless
`equivalent_mutants.toml` says why it cannot be detected. These modules keep their decisions in
tables, and mutmut changes only undecorated functions; hence a small tool of our own.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

from mutations import Key, Mutant, mutants_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cuepost" / "domain"
TESTS = ROOT / "tests" / "unit" / "domain"
MODULES: dict[str, tuple[str, ...]] = {
    "signing": ("test_signing.py",),
    "retry_schedule": ("test_retry_schedule.py",),
    "delivery": ("test_delivery.py",),
    "project": ("test_project.py",),
    "egress_policy": ("test_egress_policy.py", "test_egress_settings.py"),
}
LEAST_KILLED = 95.0
LIMIT_SECONDS = 120
NOTICED_BY_TIME = 124


class _Loader(importlib.abc.InspectLoader):
    def __init__(self, name: str, code: CodeType) -> None:
        self._name, self._code = name, code

    def get_source(self, fullname: str) -> str:
        return ""

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, module.__dict__)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._name = f"cuepost.domain.{mutant.module}"
        self._code = compile(mutant.source, f"{mutant.module}.py", "exec")

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_loader(fullname, _Loader(fullname, self._code))


def is_noticed(mutant: Mutant | None, tests: Sequence[str]) -> bool:
    """Runs in a child process that has imported pytest, and none of our modules."""
    child = os.fork()
    if child == 0:
        _try(mutant, tests)
    _, status = os.waitpid(child, 0)
    return status != 0


def _try(mutant: Mutant | None, tests: Sequence[str]) -> None:
    import pytest  # noqa: PLC0415  # loaded by the parent, after it has set its environment

    # The tests of the domain do not need the suite's fixtures and plugins.
    config = ROOT / "scripts" / "mutation.ini"
    signal.signal(signal.SIGALRM, lambda *_: os._exit(NOTICED_BY_TIME))
    signal.alarm(LIMIT_SECONDS)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))
    status = 1
    try:
        options = ["-x", "-q", "-c", str(config), f"--rootdir={ROOT}", "--noconftest"]
        status = int(pytest.main([*options, *tests]))
    finally:
        os._exit(status)


def equivalents() -> set[Key]:
    listed = tomllib.loads((ROOT / "scripts" / "equivalent_mutants.toml").read_text())["mutants"]
    assert all(each["why"] for each in listed)
    names = ("module", "line", "column", "was", "becomes")
    return {tuple(each[name] for name in names) for each in listed}


def judged(module: str, known: set[Key]) -> tuple[int, int, list[Mutant]]:
    """The number of mutants, the number of equivalent ones, and the undetected ones."""
    tests = [str(TESTS / name) for name in MODULES[module]]
    assert not is_noticed(None, tests), f"the tests of {module} fail without any mutant"
    unnoticed, equivalent, count = [], 0, 0
    for mutant in mutants_of(SOURCE / f"{module}.py"):
        if mutant.key in known:
            equivalent += 1
            continue
        count += 1
        if not is_noticed(mutant, tests):
            unnoticed.append(mutant)
            print(f"  not noticed: {mutant}", flush=True)
    return count, equivalent, unnoticed


def _prepare() -> None:
    """Imports what every child needs, but none of our modules."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "packages" / "receiver" / "src")]
    import hypothesis.strategies  # noqa: PLC0415
    import pytest  # noqa: F401, PLC0415

    repeatable = hypothesis.settings(
        max_examples=50, deadline=None, database=None, derandomize=True
    )
    hypothesis.settings.register_profile("mutation", repeatable)
    hypothesis.settings.load_profile("mutation")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", choices=[[], *MODULES], default=[])
    parser.add_argument("--list", action="store_true", help="show the mutants, try none")
    chosen = parser.parse_args()
    _prepare()
    total = killed = 0
    for module in chosen.modules or MODULES:
        if chosen.list:
            print("\n".join(map(str, mutants_of(SOURCE / f"{module}.py"))))
            continue
        count, equivalent, unnoticed = judged(module, equivalents())
        total, killed = total + count, killed + count - len(unnoticed)
        print(f"{module}: {count - len(unnoticed)} of {count} noticed; {equivalent} equivalent")
    share = 100 * killed / total if total else 100.0
    print(f"all: {killed} of {total} noticed, {share:.1f} %")
    return 0 if share >= LEAST_KILLED else 1


if __name__ == "__main__":
    sys.exit(main())
