"""What tests of the result client share: links, answers, and a client."""

from typing import Any

import pytest

from cuepost_receiver.results import Problem, ResultClient, ResultFailed
from packages.receiver.tests.media_server import Site, as_json

PROJECT = "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90"

RESULT = f"/v1/projects/{PROJECT}/result"

KEY = "cpk_canary"

CONTENT = bytes(range(256)) * 4_000


def link(url: str, **changed: Any) -> dict[str, Any]:
    return {
        "kind": "video",
        "name": "trailer.mp4",
        "url": url,
        "contentType": "video/mp4",
        "sizeBytes": len(CONTENT),
        "expiresAt": "2030-01-02T03:04:05.678Z",
    } | changed


def result(*links: dict[str, Any]) -> dict[str, Any]:
    return {
        "projectId": PROJECT,
        "status": "completed",
        "stage": "export",
        "links": list(links),
        "exportedAt": "2026-01-02T03:04:05.678Z",
        "accessExpiresAt": None,
    }


def client(service: Site, **more: Any) -> ResultClient:
    return ResultClient(service.url(), KEY, **{"retry_seconds": (0.0,) * 5, "timeout": 5.0, **more})


def offer(service: Site, media: Site, file: Any, **changed: Any) -> None:
    media.routes["/file"] = file
    service.routes[RESULT] = as_json(result(link(media.url("/file?sig=1"), **changed)))


def problem(call: Any) -> Problem:
    with pytest.raises(ResultFailed) as caught:
        call()
    assert KEY not in str(caught.value)
    return caught.value.problem
