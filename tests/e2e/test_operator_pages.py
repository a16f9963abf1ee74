"""The operator's pages of several processes: one session for all, which ends in all of them."""

import json
import re
from base64 import b64encode
from pathlib import Path

import httpx2

from tests.support.postgres import fresh_database_sync
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess, free_port, run

TOKEN = re.compile(r'name="_token" value="([^"]+)"')


def client(port: str) -> httpx2.Client:
    base_url = f"http://127.0.0.1:{port}"
    return httpx2.Client(base_url=base_url, trust_env=False, timeout=PATIENCE_SECONDS)


def test_a_revoked_key_ends_its_session_in_every_process(tmp_path: Path, postgres_url: str) -> None:
    with fresh_database_sync(postgres_url) as url:
        shared = {
            "DATA_DIR": str(tmp_path / "data"),
            "DATABASE_URL": url,
            "MASTER_KEY": b64encode(bytes(32)).decode(),
        }
        first, second, public = ({**shared, "PORT": str(free_port())} for _ in range(3))
        assert run(first, "setup").returncode == 0
        made = json.loads(run(first, "keys", "create", "--operator", "--json").stdout)
        with (
            ServiceProcess(first, "api"),
            ServiceProcess(second, "api"),
            ServiceProcess(public | {"OPERATOR_PAGES": "off"}, "api"),
            client(first["PORT"]) as one,
            client(second["PORT"]) as another,
            client(public["PORT"]) as outside,
        ):
            token = TOKEN.findall(one.get("/operator/sign-in").text)[0]
            form, origin = {"_token": token, "key": made["token"]}, str(one.base_url).rstrip("/")
            answer = one.post("/operator/sign-in", data=form, headers={"origin": origin})
            assert answer.headers["location"] == "/operator"
            session = {"cookie": f"cuepost-operator={one.cookies['cuepost-operator']}"}
            page = another.get("/operator", headers=session)
            assert (page.status_code, "PostgreSQL" in page.text) == (200, True)
            assert "No worker is registered" in page.text
            assert outside.get("/operator", headers=session).status_code == 404
            assert run(first, "keys", "revoke", made["id"]).returncode == 0
            for each in (one, another):
                refused = each.get("/operator", headers=session)
                assert refused.headers["location"] == "/operator/sign-in?next=/operator"
