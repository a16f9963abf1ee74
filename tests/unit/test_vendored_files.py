"""What is vendored is what its publisher made, and says so: version, licence, hash."""

import hashlib
from pathlib import Path

import pytest

from cuepost.interfaces.web.static_files import NAMES, address_of, static_files

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "src/cuepost/interfaces/web/static/vendor", ROOT / "tests/support/vendor"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parts[-3])
def test_every_vendored_file_has_its_hash_and_its_licence(folder: Path) -> None:
    lines = [line.split() for line in (folder / "SHA256SUMS").read_text().splitlines()]
    sums = {name: expected for expected, name in lines}
    files = {path.name for path in folder.iterdir() if path.suffix in {".js", ".css"}}
    assert set(sums) == files
    for name, expected in sums.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected
        assert (folder / f"{name.partition('-')[0]}-LICENSE").is_file()


def test_every_static_file_is_compressed_and_named_by_its_content() -> None:
    assert set(static_files()) == set(NAMES)
    for name, found in static_files().items():
        assert len(found.compressed) < len(found.content)
        assert address_of(name) == f"/static/{name}?v={found.version}"
