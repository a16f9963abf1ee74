"""What is installed as an extra is asked for in one line where it is missing."""

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from cuepost.bootstrap.extras import EXTRAS, MissingExtra, is_installed, require
from tests.support.service_process import environment, free_port

ROOT = Path(__file__).parents[2]
# A module that is None here cannot be imported, as if it were not installed.
WITHOUT = (
    "import sys; sys.modules[sys.argv.pop(1)] = None; from cuepost.bootstrap import main; main()"
)

ASKED_FOR = {
    "postgres": (
        {"DATABASE_URL": "postgresql://cuepost@127.0.0.1:1/cuepost"},
        "greenlet",
        "api",
        "CUEPOST_DATABASE_URL names PostgreSQL",
        "postgres",
    ),
    "s3": ({"MEDIA_URL": "s3://results"}, "obstore", "serve", "CUEPOST_MEDIA_URL names S3", "s3"),
    "traces": ({"TRACES": "true"}, "opentelemetry", "serve", "CUEPOST_TRACES is true", "otel"),
    "metrics": (
        {"OTLP_METRICS": "true"},
        "opentelemetry",
        "serve",
        "CUEPOST_OTLP_METRICS is true",
        "otel",
    ),
    "oidc": (
        {
            "OIDC_ISSUER": "https://id.example.com",
            "OIDC_CLIENT_ID": "cuepost",
            "OIDC_CLIENT_SECRET": "secret",
        },
        "jwt",
        "serve",
        "CUEPOST_OIDC_ISSUER names an OpenID provider",
        "oidc",
    ),
    "mcp": (
        {"API_KEY": "cpk_x"},
        "mcp",
        "mcp",
        "'cuepost mcp' speaks the Model Context Protocol",
        "mcp",
    ),
}


@pytest.mark.parametrize(
    ("settings", "module", "command", "reason", "extra"), ASKED_FOR.values(), ids=ASKED_FOR
)
def test_a_missing_extra_is_named_in_one_line(  # noqa: PLR0917  # given by name
    settings: dict[str, str], module: str, command: str, reason: str, extra: str, tmp_path: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, module, command],
        env=environment({"DATA_DIR": str(tmp_path), "PORT": str(free_port())} | settings),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    install = f"run: pip install 'cuepost[{extra}]'"
    said = f"Error: {reason}, but the packages for it are not installed; {install}\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", said)


def test_what_is_installed_is_not_asked_for() -> None:
    for extra in EXTRAS:
        assert is_installed(extra)
        require(extra, "a test")


def test_an_extra_with_a_missing_module_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingExtra, match=r"pip install 'cuepost\[s3\]'$"):
        require("s3", "a test")


def test_the_extras_are_those_of_the_distribution() -> None:
    """Each module that an extra is known by comes with a package that the extra installs."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    assert set(extras) - {"all"} == set(EXTRAS)
    assert extras["all"] == [f"cuepost[{','.join(sorted(EXTRAS))}]"]
    owners = packages_distributions()
    for extra, modules in EXTRAS.items():
        for module in modules:
            brought = [each for each in extras[extra] if each.partition(">")[0] in owners[module]]
            assert brought or module == "opentelemetry", (extra, module)
