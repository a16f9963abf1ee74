"""A real service on each store, and the certified provider that it trusts."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.openid_provider import openid_provider, settings_for
from tests.support.postgres import fresh_database_sync
from tests.support.service_process import ServiceProcess, free_port, run

PEOPLE: dict[str, dict[str, Any]] = {
    "ada": {
        "org": "acme",
        "groups": ["admins", "all"],
        "email": "ada@example.com",
        "email_verified": True,
    },
    "eve": {"org": "acme", "groups": ["all"]},
    "mallory": {"org": "other", "groups": ["admins"]},
}


@dataclass
class Site:
    """A service whose account has the external id `acme`."""

    base_url: str
    issuer: str
    settings: dict[str, str]
    account_id: str
    process: ServiceProcess

    def command(self, *arguments: str) -> str:
        ran = run(self.settings, *arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        port = free_port()
        base_url = f"http://127.0.0.1:{port}"
        issuer = stack.enter_context(
            openid_provider(tmp_path / "provider", f"{base_url}/sign-in/openid/callback", PEOPLE)
        )
        settings = {"DATA_DIR": str(tmp_path / "data"), "PORT": str(port)} | settings_for(issuer)
        if request.param == "postgresql":
            admin_url = request.getfixturevalue("postgres_url")
            settings["DATABASE_URL"] = stack.enter_context(fresh_database_sync(admin_url))
            assert run(settings, "migrate").returncode == 0
        made = run(settings, "accounts", "create", "--external-id", "acme", "--json")
        account_id = json.loads(made.stdout)["id"]
        process = stack.enter_context(ServiceProcess(settings))
        yield Site(base_url, issuer, settings, account_id, process)
