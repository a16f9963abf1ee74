"""Every file of the operator's kit is checked by the program that reads it, if it can be had."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from cuepost import __version__
from cuepost.settings import VARIABLES
from tests.support.missing import missing_component
from tests.support.operator_tools import program
from tests.support.service_process import ServiceProcess, free_port

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
METRIC = re.compile(r"\bcuepost_\w+")
# What a client adds to the name of a metric.
SERIES = re.compile(r"_(bucket|sum|count)$")


def ran(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def tool(name: str) -> Path:
    """From the environment of the tests."""
    return Path(sys.executable).with_name(name)


def documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


def test_the_dockerfile_follows_the_rules() -> None:
    checked = ran(tool("hadolint"), DEPLOY / "docker" / "Dockerfile")
    assert (checked.returncode, checked.stdout) == (0, "")


def test_the_image_runs_as_an_ordinary_user_with_a_health_check() -> None:
    lines = (DEPLOY / "docker" / "Dockerfile").read_text().splitlines()
    assert "USER 10001" in lines[lines.index("FROM python:3.13-slim") :]
    assert any(line.startswith("HEALTHCHECK ") for line in lines)


@pytest.mark.parametrize("port", ["CUEPOST_PORT", "CUEPOST_WORKER_PORT"])
def test_the_health_check_says_whether_the_process_is_ready(tmp_path: Path, port: str) -> None:
    settings = {"DATA_DIR": str(tmp_path), "PORT": str(free_port())}
    script = DEPLOY / "docker" / "healthcheck.py"

    def code() -> int:
        environ = {port: settings["PORT"]}
        return subprocess.run(
            [sys.executable, script], env=environ, stderr=subprocess.DEVNULL, check=False
        ).returncode

    with ServiceProcess(settings):
        assert code() == 0
    assert code() == 1


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_each_unit_can_be_loaded(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        missing_component("no systemd-analyze")
    copy = tmp_path / unit.name
    # The program of the unit is not installed on this machine.
    copy.write_text(unit.read_text().replace("/opt/cuepost/bin/cuepost", "/bin/true"))
    checked = ran("systemd-analyze", "verify", copy)
    about_it = [line for line in checked.stderr.splitlines() if unit.name.rstrip(".") in line]
    assert (checked.returncode, about_it) == (0, [])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_each_unit_gives_up_what_it_does_not_need(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        missing_component("no systemd-analyze")
    exposure = ran("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    assert exposure.returncode == 0, exposure.stdout


def test_the_units_start_each_half_by_its_command() -> None:
    started = {
        unit.name: re.findall(r"ExecStart=/opt/cuepost/bin/cuepost (\w+)", unit.read_text())
        for unit in UNITS
    }
    assert started == {
        "cuepost.service": ["serve"],
        "cuepost-api@.service": ["api"],
        "cuepost-worker@.service": ["worker"],
    }


def test_prometheus_can_read_its_configuration_and_the_alerts() -> None:
    promtool, folder = program("promtool"), DEPLOY / "prometheus"
    for arguments in (
        ("check", "config", "--syntax-only", folder / "prometheus.yml"),
        ("check", "rules", folder / "alerts.yml"),
        ("test", "rules", folder / "alerts.test.yml"),
    ):
        checked = promtool.run(*arguments)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def alerts() -> list[dict[str, Any]]:
    [found] = documents(DEPLOY / "prometheus" / "alerts.yml")
    return [rule for group in found["groups"] for rule in group["rules"]]


def test_every_alert_is_tested() -> None:
    [tests] = documents(DEPLOY / "prometheus" / "alerts.test.yml")
    fires = {
        each["alertname"]
        for test in tests["tests"]
        for each in test["alert_rule_test"]
        if each["exp_alerts"]
    }
    assert fires == {rule["alert"] for rule in alerts()}


def test_every_metric_of_dashboard_and_alerts_is_one_that_the_service_shows(
    shown_metrics: frozenset[str],
) -> None:
    texts = [rule["expr"] for rule in alerts()] + list(expressions())
    named = {SERIES.sub("", name) for text in texts for name in METRIC.findall(text)}
    assert named - shown_metrics == set()
    assert len(named) > 10


@pytest.fixture(scope="module")
def shown_metrics(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    port = free_port()
    settings = {"DATA_DIR": str(tmp_path_factory.mktemp("data")), "PORT": str(port)}
    with ServiceProcess(settings):
        text = httpx2.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    return frozenset(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana" / "cuepost.json").read_text())
    return found


def expressions() -> Iterator[str]:
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def test_every_expression_of_the_dashboard_can_be_read(tmp_path: Path) -> None:
    """As a recording rule, which has the same language."""
    rules = [
        {"record": f"panel:{number}", "expr": text.replace("$__rate_interval", "5m")}
        for number, text in enumerate(expressions())
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = program("promtool").run("check", "rules", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    taken = [
        (x, y)
        for panel in dashboard()["panels"]
        for place in (panel["gridPos"],)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24


def test_the_manifests_fit_the_schemas_of_kubernetes() -> None:
    checked = ran(
        tool("kubernetes-validate"),
        "--strict",
        "--quiet",
        *(path for path in MANIFESTS if path.name != "kustomization.yaml"),
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_manifest_but_the_secret_is_applied() -> None:
    [listed] = documents(DEPLOY / "kubernetes" / "kustomization.yaml")
    others = {path.name for path in MANIFESTS} - {"kustomization.yaml", "secret.example.yaml"}
    assert set(listed["resources"]) == others


def test_every_deployment_has_probes_and_a_disruption_budget() -> None:
    for half in ("api", "worker"):
        deployment, budget, *_ = documents(DEPLOY / "kubernetes" / f"{half}.yaml")
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert container["args"] == [half]
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(container)
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert deployment["spec"]["replicas"] == 2
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert budget["spec"]["selector"]["matchLabels"] == labels


def test_the_compose_file_has_every_part_and_hardens_ours() -> None:
    [compose] = documents(DEPLOY / "compose.yaml")
    services = compose["services"]
    ours = {"api", "setup", "worker"}
    assert set(services) == ours | {"postgres", "nginx", "prometheus", "grafana"}
    for name in ours:
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
    assert [services[name]["deploy"]["replicas"] for name in ("api", "worker")] == [2, 2]
    for service in services.values():
        for mounted in service.get("volumes", ()):
            source = mounted.partition(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).exists(), source


def test_every_setting_that_the_kit_names_exists() -> None:
    texts = {path: path.read_text() for path in DEPLOY.rglob("*") if path.is_file()}
    named = {
        (path.name, name)
        for path, text in texts.items()
        for name in re.findall(r"CUEPOST_[A-Z_]+", text)
    }
    assert {(file, name) for file, name in named if name not in VARIABLES} == set()
    assert len(named) > 10


def test_the_kit_names_this_version() -> None:
    texts = [path.read_text() for path in DEPLOY.rglob("*") if path.is_file()]
    assert {each for text in texts for each in re.findall(r"cuepost:(\d[\d.]+)", text)} == {
        __version__
    }


def test_logrotate_can_read_its_configuration(tmp_path: Path) -> None:
    config = tmp_path / "cuepost"
    config.write_text(
        (DEPLOY / "logrotate" / "cuepost").read_text().replace("/var/log/cuepost", str(tmp_path))
    )
    log = tmp_path / "cuepost.log"
    log.write_text("a line\n")
    rotated = program("logrotate").run("--force", "--state", tmp_path / "state", config)
    assert (rotated.returncode, rotated.stderr) == (0, "")
    assert (log.read_text(), (tmp_path / "cuepost.log.1").read_text()) == ("", "a line\n")
