"""The wheel of the service: complete, and with the receiver kit that it needs."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from cuepost import __version__

ROOT = Path(__file__).parents[2]
KIT = ROOT / "packages" / "receiver" / "src"
# Without `site` there is no editable install: the service comes from the wheel alone.
FROM_WHEEL = "import sys; sys.path[:0] = sys.argv[1:3]; del sys.argv[1:3]\n"
VERIFY = f"{FROM_WHEEL}from cuepost.bootstrap import main; main()"
WHERE = (
    f"{FROM_WHEEL}from cuepost.bootstrap import use_bundled_kit; use_bundled_kit()\n"
    "import cuepost, cuepost_receiver.doctor as kit; print(cuepost.__file__, kit.__file__)"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    [made] = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def ran(program: str, installed: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    libraries = sysconfig.get_paths()["purelib"]
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(installed), libraries, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def sources(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    ours = sources(ROOT / "src")
    kit = {f"cuepost/_bundled/{name}" for name in sources(KIT)}
    assert ours <= packed
    assert kit <= packed
    assert {"cuepost/py.typed", "cuepost/interfaces/web/templates/error.html"} <= ours


def test_the_command_finds_the_kit_that_its_wheel_carries(installed: Path) -> None:
    found = ran(WHERE, installed)
    assert found.stderr == ""
    assert all(place.startswith(str(installed)) for place in found.stdout.split())


def test_a_command_of_the_wheel_diagnoses_a_signature(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "request.txt").write_text("webhook-id: msg_1\n\n{}")
    (tmp_path / "secret.txt").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    files = ("--secret-file", str(tmp_path / "secret.txt"), str(tmp_path / "request.txt"))
    found = ran(VERIFY, installed, "verify", "--json", *files)
    assert found.returncode == 1
    assert '"valid": false' in found.stdout


def test_the_two_distributions_have_one_version() -> None:
    pages = [ROOT / "pyproject.toml", ROOT / "packages" / "receiver" / "pyproject.toml"]
    versions = {
        line for page in pages for line in page.read_text().splitlines() if line[:9] == "version ="
    }
    assert versions == {f'version = "{__version__}"'}
