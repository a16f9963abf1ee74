"""The README's commands, as they are printed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.service_process import ServiceProcess, environment, free_port

README = Path(__file__).parents[2] / "README.md"


def shell_blocks() -> list[str]:
    return re.findall(r"```sh\n(.*?)```", README.read_text(), flags=re.DOTALL)


def documents(text: str) -> list[dict[str, Any]]:
    """JSON documents that follow one another without a separator."""
    decoder, found, place = json.JSONDecoder(), [], 0
    while place < len(text):
        document, place = decoder.raw_decode(text, place)
        found.append(document)
    return found


def test_the_first_webhook_of_the_readme_works_as_printed(tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": str(port),
        "BASE_URL": f"http://127.0.0.1:{port}",
    }
    script = "set -eu\n" + "\n".join(shell_blocks()).replace(":8000", f":{port}")
    # The command of this environment, wherever that is.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with ServiceProcess(settings) as service:
        api_key, service_key = re.findall(r"(?:API|Service) key\s+(cpk_\S+)", service.greeting)
        [inbox] = re.findall(r"Test inbox\s+(http\S+)", service.greeting)
        ran = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=environment(settings)
            | {
                "CUEPOST_API_KEY": api_key,
                "CUEPOST_SERVICE_KEY": service_key,
                "INBOX": inbox,
                "PATH": path,
            },
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    endpoint, reported, events, deliveries, result = documents(ran.stdout)
    assert str(endpoint["secret"]).startswith("whsec_")
    assert [answer["accepted"] for answer in reported["results"]] == [True] * 4
    assert {event["type"] for event in events["data"]} == {"project.ready", "project.completed"}
    assert len(deliveries["data"]) == 2
    assert endpoint["url"] == inbox
    assert result["status"] == "completed"
    assert [link["name"] for link in result["links"]] == ["trailer.vtt"]
    assert (tmp_path / "fetched.vtt").read_bytes() == (tmp_path / "trailer.vtt").read_bytes()
