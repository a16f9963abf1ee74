"""Functions stay short enough to be read at a single_read."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "src", ROOT / "packages/receiver/src")
LONGEST = 39


def too_long(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            if lines > LONGEST:
                yield f"{path}: {node.name} has {lines} lines"


def test_no_function_is_longer_than_a_screen() -> None:
    paths = [path for source in SOURCES for path in sorted(source.rglob("*.py"))]
    # A migration is a table as it once was, and is never changed again.
    paths = [path for path in paths if "migrations" not in path.parts]
    assert paths
    assert [found for path in paths for found in too_long(path)] == []


def test_the_longest_that_may_be_is_told_from_one_line_more(tmp_path: Path) -> None:
    body = "    pass\n" * (LONGEST - 1)
    path = tmp_path / "planted.py"
    path.write_text(f"def fits():\n{body}\n\nasync def sprawls():\n{body}    pass\n")
    assert list(too_long(path)) == [f"{path}: sprawls has {LONGEST + 1} lines"]
