"""The test inbox on PostgreSQL: the worker that sends never talks to the API that shows."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.e2e.first_steps import ApiUser, Keys
from tests.support.postgres import fresh_database_sync
from tests.support.service_process import Ended, ServiceProcess, free_port, run

TOKEN = re.compile(r'name="_token" value="([^"]+)"')
LOOKS = 100


@pytest.fixture
def settings(tmp_path: Path, postgres_url: str) -> Iterator[dict[str, str]]:
    """As they come: no network is opened, no port, no plain HTTP."""
    with fresh_database_sync(postgres_url) as url:
        yield {
            "DATA_DIR": str(tmp_path / "data"),
            "DATABASE_URL": url,
            "MASTER_KEY": b64encode(bytes(32)).decode(),
            "PORT": str(free_port()),
        }


def test_a_delivery_to_the_inbox_arrives_through_the_store(settings: dict[str, str]) -> None:
    made = json.loads(run(settings, "setup", "--json").stdout)
    base_url = f"http://127.0.0.1:{settings['PORT']}"
    api_user = ApiUser(base_url, Keys(made["apiKey"], made["serviceKey"]))
    with ServiceProcess(settings, "api") as api, ServiceProcess(settings, "worker") as worker:
        with httpx2.Client(base_url=base_url, timeout=20, trust_env=False) as client:
            inbox = signed_in(client, made["signInUrl"])
            endpoint = api_user.post("/v1/webhooks", {"url": base_url + inbox})
            api_user.post(f"/v1/webhooks/{endpoint['id']}/test", {}, 202)
            assert arrived(api_user, client, inbox)
        assert worker.stop() == Ended(0, "")
        assert api.stop() == Ended(0, "")


def signed_in(client: httpx2.Client, link: str) -> str:
    """The path of the account's inbox."""
    [token] = set(TOKEN.findall(client.get(link).text))
    assert client.post(link, data={"_token": token}).status_code == 303
    return client.get("/settings/inbox").headers["location"]


def arrived(api_user: ApiUser, client: httpx2.Client, inbox: str) -> bool:
    for _ in range(LOOKS):
        [delivery] = api_user.get("/v1/deliveries")["data"]
        if delivery["status"] == "delivered":
            return "signature valid" in client.get(inbox).text
    return False
