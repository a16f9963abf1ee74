"""The kit stands on the standard library alone; only its extras import anything else."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
EXTRAS = {
    "cuepost_receiver/django.py": {"django"},
    "cuepost_receiver/stores/postgres.py": {"psycopg"},
    "cuepost_receiver/wsgi.py": {"flask"},
}
WITHOUT_EXTRAS = """
import sys
sys.path.append(sys.argv[1])
import cuepost_receiver, cuepost_receiver.asgi, cuepost_receiver.wsgi
import cuepost_receiver.doctor, cuepost_receiver.results
print(cuepost_receiver.__version__)
"""


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def test_every_import_is_of_the_standard_library_or_an_extra() -> None:
    ours = sys.stdlib_module_names | {"cuepost_receiver"}
    found = {
        str(path.relative_to(SOURCE)): set(imported(path)) - ours for path in SOURCE.rglob("*.py")
    }
    assert {name: modules for name, modules in found.items() if modules} == EXTRAS


def test_the_core_works_on_a_bare_python() -> None:
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", WITHOUT_EXTRAS, str(SOURCE)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("0.2.0\n", "")


def test_types_are_shipped() -> None:
    assert (SOURCE / "cuepost_receiver" / "py.typed").exists()
