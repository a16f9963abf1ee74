"""The manifest of the specification's rules: how it is read, and everything that can be wrong."""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "tests" / "spec" / "rules.toml"
TEST_FOLDERS = ("tests", "packages/receiver/tests")
OPEN_RULES = ROOT / "tests" / "spec" / "open_rules.txt"

# "0" is the opening of the specification; "2" has subsections alone.
SECTIONS = ("0", "1", "2.1", "2.2", "2.3", "3", "4", "4.1", "4.2", "4.3", "5", "5.1", *"6789")
LATER_ISSUES = (
    "The delivery engine: signed, guarded, fair, and nothing lost",
    "Results: fresh download links for a finished export",
    "The receiver kit and the developer's tools",
    "The settings pages",
    "The MCP interface",
)


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    section: str
    says: str
    tests: tuple[str, ...] = ()
    open: str | None = None


def read_rules(manifest: str) -> list[Rule]:
    return [
        Rule(**(entry | {"tests": tuple(entry.get("tests", ()))}))
        for entry in tomllib.loads(manifest)["rule"]
    ]


def named_tests(source: str) -> Iterator[str]:
    """The names of the tests in a module, as they stand behind its path; parameters left out."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from (f"{node.name}::{name}" for name in _functions(node.body))
        else:
            yield from _functions([node])


def _functions(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("test_"):
            yield node.name


@cache
def existing_tests() -> frozenset[str]:
    return frozenset(
        f"{path.relative_to(ROOT).as_posix()}::{name}"
        for folder in TEST_FOLDERS
        for path in (ROOT / folder).rglob("test_*.py")
        for name in named_tests(path.read_text(encoding="utf-8"))
    )


def complaints(rules: list[Rule], allowed_open: list[str], existing: frozenset[str]) -> list[str]:
    """Everything that is wrong with a manifest."""
    found = [f"{name} stands twice" for name in _repeated(rule.id for rule in rules)]
    found += [f"{name} is allowed twice" for name in _repeated(allowed_open)]
    found += [complaint for rule in rules for complaint in _about(rule, existing)]
    covered = {rule.section for rule in rules}
    found += [f"section {section} has no rule" for section in SECTIONS if section not in covered]
    still_open = {rule.id for rule in rules if rule.open is not None}
    found += [f"{name} may not be open" for name in sorted(still_open - set(allowed_open))]
    found += [f"{name} is not open any more" for name in sorted(set(allowed_open) - still_open)]
    return found


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _about(rule: Rule, existing: frozenset[str]) -> Iterator[str]:
    if rule.section not in SECTIONS:
        yield f"{rule.id} is in no section"
    elif not rule.id.startswith((f"{rule.section}.", f"{rule.section}-")):
        yield f"{rule.id} is not named after its section"
    if not rule.says.endswith("."):
        yield f"{rule.id} says no sentence"
    if bool(rule.tests) is (rule.open is not None):
        yield f"{rule.id} has to have tests or to be open, and not both"
    if rule.open is not None and rule.open not in LATER_ISSUES:
        yield f"{rule.id} waits for an issue that does not exist"
    yield from (f"{rule.id} names {test} twice" for test in _repeated(rule.tests))
    yield from (
        f"{rule.id} names {test}, which does not exist"
        for test in rule.tests
        if test not in existing
    )
