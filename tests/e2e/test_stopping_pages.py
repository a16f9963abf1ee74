"""A service that is told to stop does not wait for clients that only watch."""

import json
import re
from pathlib import Path

import httpx2

from tests.support.service_process import Ended, ServiceProcess, free_port, run

TOKEN = re.compile(r'name="_token" value="([^"]+)"')
# The service waits ten seconds for requests under way; a watcher must not make it do so.
SOON_SECONDS = 8.0


def test_live_rows_end_when_the_service_stops(tmp_path: Path) -> None:
    settings = {"DATA_DIR": str(tmp_path / "data"), "PORT": str(free_port())}
    link = json.loads(run(settings, "setup", "--json").stdout)["signInUrl"].replace(
        ":8000/", f":{settings['PORT']}/"
    )
    base_url = link.partition("/sign-in")[0]
    with (
        ServiceProcess(settings) as service,
        httpx2.Client(base_url=base_url, timeout=SOON_SECONDS, trust_env=False) as client,
    ):
        [token] = set(TOKEN.findall(client.get(link).text))
        assert client.post(link, data={"_token": token}).status_code == 303
        with client.stream("GET", "/settings/deliveries/live") as watching:
            lines = watching.iter_lines()
            assert next(lines) == "retry: 2000"
            service.send_signal(15)
            assert [line for line in lines if line.startswith("event")] == []
        assert service.wait() == Ended(0, "")
