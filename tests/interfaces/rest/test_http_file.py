"""The `.http` file is sent from the top, as an editor does, and every call of it is understood."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cuepost.interfaces.rest.table import OPERATIONS
from tests.application.harness import OPERATOR
from tests.interfaces.rest.client import Api

DEFINITION = re.compile(r"^@(\w+) = (.+)$", re.MULTILINE)
VARIABLE = re.compile(r"{{([^{}]+)}}")
RESULT = re.compile(r"(\w+)\.response\.body\.\$\.(?:(\w+)\[0\]\.)?(\w+)")


@dataclass
class Editor:
    """What an editor knows: the environment, the file's variables, the answers so far."""

    environ: dict[str, str]
    variables: dict[str, str]
    answers: dict[str, Any]

    def filled_in(self, text: str) -> str:
        return VARIABLE.sub(lambda found: self._value(found[1]), text)

    def _value(self, name: str) -> str:
        if name.startswith("$processEnv "):
            return self.environ[name.removeprefix("$processEnv ")]
        if name in self.variables:
            return self.filled_in(self.variables[name])
        found = RESULT.fullmatch(name)
        assert found is not None, name
        body = self.answers[found[1]]
        return str((body[found[2]][0] if found[2] else body)[found[3]])


@dataclass(frozen=True)
class Sent:
    name: str
    method: str
    url: str
    headers: dict[str, str]
    body: Any


def requests_in(text: str, editor: Editor) -> Iterator[Sent]:
    for part in text.split("\n### ")[1:]:
        lines = [line for line in part.splitlines()[1:] if not line.startswith("#")]
        [name] = re.findall(r"^# @name (\w+)$", part, re.MULTILINE)
        head, _, body = "\n".join(lines).partition("\n\n")
        first, *headers = editor.filled_in(head).strip().splitlines()
        method, url = first.split(" ")
        given = dict(line.split(": ") for line in headers)
        body = editor.filled_in(body).strip()
        yield Sent(name, method, url, given, json.loads(body) if body else None)


async def test_every_call_is_in_the_file_and_is_understood(sqlite_api: Api) -> None:
    text = (await sqlite_api.call("GET", "/cuepost.http", key="")).text
    environ = {
        "CUEPOST_API_KEY": sqlite_api.owner,
        "CUEPOST_SERVICE_KEY": sqlite_api.pipeline,
        "CUEPOST_OPERATOR_KEY": sqlite_api.operator,
    }
    harness = sqlite_api.harness
    await harness.do(harness.service.sign_in.make_link, OPERATOR, harness.account.id)
    editor = Editor(environ, dict(DEFINITION.findall(text)), {})
    found: dict[str, int] = {}
    for sent in requests_in(text, editor):
        answer = await sqlite_api.client.request(
            sent.method, sent.url, headers=sent.headers, json=sent.body, timeout=30
        )
        editor.answers[sent.name] = answer.json() if answer.content else None
        found[sent.name] = answer.status_code
    expected = {operation.name: operation.status for operation in OPERATIONS}
    assert found.keys() == expected.keys()
    # What is under way cannot be retried, and what is queued has no result: those are answers, too.
    conflicts = {name for name, status in found.items() if status == 409}
    assert {name: expected[name] for name in found.keys() - conflicts} == {
        name: found[name] for name in found.keys() - conflicts
    }
