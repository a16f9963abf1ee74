"""A newcomer's first five minutes over HTTP, against a service that runs somewhere."""

import re
from dataclasses import dataclass
from typing import Any

import httpx2

KEYS = re.compile(r"API key +(cpk_\S+)\n +Service key +(cpk_\S+)\n")


@dataclass(frozen=True, slots=True)
class Keys:
    api: str
    service: str


def keys_in(greeting: str) -> Keys | None:
    found = KEYS.search(greeting)
    return Keys(*found.groups()) if found else None


def request(base_url: str, key: str, method: str, path: str, body: Any = None) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key}"}
    with httpx2.Client(base_url=base_url, headers=headers, timeout=20, trust_env=False) as client:
        return client.request(method, path, json=body)


@dataclass(frozen=True, slots=True)
class ApiUser:
    base_url: str
    keys: Keys

    def get(self, path: str) -> Any:
        answer = request(self.base_url, self.keys.api, "GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any, status: int = 201) -> Any:
        answer = request(self.base_url, self.keys.api, "POST", path, body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def patch(self, path: str, body: Any) -> Any:
        answer = request(self.base_url, self.keys.api, "PATCH", path, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def report(self, project_id: str, *statuses: str) -> list[Any]:
        milestones = [
            {"reportId": f"{project_id}-{status}", "projectId": project_id, "status": status}
            for status in statuses
        ]
        answer = request(
            self.base_url, self.keys.service, "POST", "/v1/milestones", {"milestones": milestones}
        )
        assert answer.status_code == 200, answer.text
        results: list[Any] = answer.json()["results"]
        return results

    def finish_a_project(self) -> str:
        project = self.post("/v1/projects", {"name": "Trailer"})
        results = self.report(project["id"], "processing", "exporting", "completed")
        assert [result["accepted"] for result in results] == [True, True, True]
        found: str = project["id"]
        return found


def health(base_url: str) -> list[tuple[int, str]]:
    answers = [
        httpx2.get(base_url + path, timeout=20, trust_env=False) for path in ("/healthz", "/readyz")
    ]
    return [(answer.status_code, answer.json()["status"]) for answer in answers]


WELL = [(200, "ok"), (200, "ready")]
