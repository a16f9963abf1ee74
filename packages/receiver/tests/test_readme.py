"""The README's code, as it is printed."""

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cuepost_receiver import Inbox
from cuepost_receiver.doctor import Cause
from cuepost_receiver.results import ResultClient
from packages.receiver.tests.signing import OTHER_SECRET, SECRET, Delivery

README = Path(__file__).parents[1] / "README.md"
RECEIVER, SIGNATURE, DOCTOR, RESULTS = re.findall(
    r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL
)


def run(block: str, **names: Any) -> dict[str, Any]:
    exec(compile(block, str(README), "exec"), names)
    return names


def test_the_receiver_of_ten_minutes_receives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "CUEPOST_WEBHOOK_SECRET", f"{OTHER_SECRET},{SECRET}")
    inbox = run(RECEIVER)["inbox"]
    assert isinstance(inbox, Inbox)
    delivery = Delivery()
    answer = inbox.receive(delivery.body, delivery.headers)
    assert (answer.status, answer.content["error"]) == (400, "too_old")
    inbox.close()


def test_the_other_blocks_do_what_they_say(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery = Delivery()
    given = {"raw_body": delivery.body, "headers": delivery.headers}
    run(SIGNATURE, **given, new_secret=SECRET, old_secret=OTHER_SECRET)
    assert capsys.readouterr().out == "too_old\n"
    assert run(DOCTOR, **given, secret=SECRET)["found"].cause is Cause.TIMESTAMP_TOO_OLD

    def save(self: ResultClient, result_url: str, folder: str, **more: Any) -> list[Any]:
        return [self.base_url, result_url, folder]

    monkeypatch.setattr(ResultClient, "save", save)
    event = SimpleNamespace(result_url="https://x.example/r")
    made = run(RESULTS, api_key="cpk_x", event=event)["paths"]
    assert made == ["https://cuepost.example.com", "https://x.example/r", "downloads"]
