"""Clients that others generate from the OpenAPI document: they compile, and their calls work."""

import json
import shutil
import sys
from pathlib import Path

from tests.clients.conftest import SimulationState
from tests.support.node_packages import node_packages

ROOT = Path(__file__).parents[2]
PYTHON, TYPESCRIPT = (Path(__file__).parent / name for name in ("python", "typescript"))


def expect_main_calls(printed: str, scene: SimulationState) -> None:
    """What the programs of both clients print, and what reached the receiver."""
    seen = json.loads(printed)
    [retried] = seen.pop("retriedEvents")
    assert seen == {
        "repeated": True,
        "replayed": "true",
        "accepted": [True, True, True],
        "resultUrls": [f"{scene.environ['CLIENT_BASE_URL']}/v1/projects/PROJECT/result"],
        "deliveries": [["project.completed", "cancelled", "endpoint_disabled"]],
        "refused": [422, "url_scheme_not_https"],
        "errors": [["url", "url_scheme_not_https"]],
    }
    scene.receiver.wait_until(
        lambda receiver: [each.event_id for each in receiver.requests] == [retried],
        "the delivery that the client retried",
    )


def test_a_generated_python_client_passes_mypy_and_makes_the_main_calls(
    scene: SimulationState,
) -> None:
    client = scene.folder / "cuepost_client"
    scene.run(
        *(sys.executable, "-m", "openapi_python_client", "generate", "--path", scene.document),
        *("--meta", "none", "--output-path", client, "--fail-on-warning"),
        *("--config", PYTHON / "config.yaml"),
    )
    shutil.copy(PYTHON / "calls.py", scene.folder)
    scene.run(
        *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "calls.py", client),
        f"--cache-dir={ROOT / '.cache' / 'mypy-clients'}",
    )
    expect_main_calls(scene.run(sys.executable, "calls.py"), scene)


def test_a_generated_typescript_client_passes_tsc_and_makes_the_main_calls(
    scene: SimulationState,
) -> None:
    packages = node_packages()
    (scene.folder / "node_modules").symlink_to(packages)
    for name in ("package.json", "tsconfig.json", "calls.ts"):
        shutil.copy(TYPESCRIPT / name, scene.folder)
    scene.run("node", packages / "openapi-typescript/bin/cli.js", scene.document, "-o", "schema.ts")
    scene.run("node", packages / "typescript/bin/tsc", "--project", "tsconfig.json")
    expect_main_calls(scene.run("node", "out/calls.js"), scene)
