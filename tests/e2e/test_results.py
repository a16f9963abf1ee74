"""The whole way of a finished export, from a file to a receiver's disk, on disk and on S3."""

import hashlib
import http.client
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.e2e.first_steps import ApiUser, Keys, keys_in, request
from tests.interfaces.cli.terminal import Terminal
from tests.support.recording_receiver import RecordingReceiver
from tests.support.s3_process import S3Process, running_s3
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess, free_port

VIDEO = bytes(range(256)) * 12_345
CAPTIONS = "WEBVTT\n\n00:00.000 --> 00:01.000\nGrüße\n".encode()
TTL_SECONDS = 2


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Process]:
    with running_s3() as found:
        yield found


@pytest.fixture(params=["disk", "s3"])
def media(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of a service whose media lie there."""
    if request.param == "disk":
        return {}
    found = request.getfixturevalue("s3")
    assert isinstance(found, S3Process)
    for name, value in found.credentials.items():
        monkeypatch.setenv(name, value)
    return dict(found.settings)


@pytest.fixture
def receiver() -> Iterator[RecordingReceiver]:
    with RecordingReceiver() as receiver:
        yield receiver


@dataclass(frozen=True, slots=True)
class ResultSetup:
    """A running service, its callers, and a receiver that it may call."""

    operator: Terminal
    api_user: ApiUser
    receiver: RecordingReceiver
    folder: Path

    def project(self, **more: Any) -> str:
        project: str = self.api_user.post("/v1/projects", {"name": "Trailer", **more})["id"]
        self.api_user.report(project, "processing", "exporting")
        return project

    def put(self, project: str, name: str, content: bytes, kind: str) -> dict[str, Any]:
        path = self.folder / name
        path.write_bytes(content)
        options = ("--project", project, "--kind", kind)
        artifact: dict[str, Any] = self.operator.json("media", "put", str(path), *options)
        return artifact

    def complete(self, project: str, *artifacts: dict[str, Any]) -> None:
        report = {"reportId": f"{project}/done", "projectId": project, "status": "completed"}
        body = {"milestones": [report | {"artifacts": artifacts}]}
        answer = self.call(self.api_user.keys.service, "POST", "/v1/milestones", body)
        assert [each["accepted"] for each in answer.json()["results"]] == [True]

    def exported(self, **more: Any) -> tuple[str, list[str]]:
        """A project with two files, and links to both."""
        project = self.project(**more)
        video = self.put(project, "trailer.mp4", VIDEO, "video")
        captions = self.put(project, "Grüße.vtt", CAPTIONS, "captions")
        self.complete(project, video, captions)
        return project, self.links(project)

    def links(self, project: str) -> list[str]:
        result = self.api_user.get(f"/v1/projects/{project}/result")
        return [link["url"] for link in result["links"]]

    def call(self, key: str, method: str, path: str, body: Any = None) -> httpx2.Response:
        return request(self.api_user.base_url, key, method, path, body)

    def key(self, account: str, *scopes: str) -> str:
        options = [option for scope in scopes for option in ("--scope", scope)]
        made = self.operator.json("keys", "create", "--account", account, *options)
        token: str = made["token"]
        return token


Open = Callable[..., ResultSetup]


@pytest.fixture
def opened(media: dict[str, str], receiver: RecordingReceiver, tmp_path: Path) -> Iterator[Open]:
    services: list[ServiceProcess] = []

    def start(**more: str) -> ResultSetup:
        settings = {
            "DATA_DIR": str(tmp_path / "data"),
            "PORT": str(free_port()),
            "RECEIVER_HTTP": "true",
            "RECEIVER_NETWORKS": "127.0.0.0/8",
            "RECEIVER_PORTS": str(receiver.port),
            **media,
            **more,
        }
        service = ServiceProcess(settings)
        services.append(service)
        keys = keys_in(service.greeting)
        assert isinstance(keys, Keys)
        api_user = ApiUser(f"http://127.0.0.1:{settings['PORT']}", keys)
        return ResultSetup(Terminal({}).with_settings(**settings), api_user, receiver, tmp_path)

    yield start
    for service in services:
        service.__exit__(None)


def fetched(link: str, **headers: str) -> httpx2.Response:
    """As anybody can: no key is sent."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.get(link, headers=named, trust_env=False, timeout=20)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_receiver_follows_the_result_address_and_gets_every_file(opened: Open) -> None:
    setup = opened()
    setup.api_user.post("/v1/webhooks", {"url": setup.receiver.url("/hook")})
    project, _ = setup.exported()
    setup.receiver.wait_until(lambda each: len(each.requests) == 1, "no event")
    data = json.loads(setup.receiver.seen()[0].body)["data"]
    assert (data["projectId"], data["status"]) == (project, "completed")
    path = urlsplit(data["resultUrl"]).path
    [mine] = [each["id"] for each in setup.operator.json("accounts", "list")["data"]]
    theirs = setup.operator.json("accounts", "create")["id"]

    result = setup.call(setup.key(mine, "projects:read"), "GET", path).json()
    files = {link["name"]: fetched(link["url"]) for link in result["links"]}
    assert {name: digest(answer.content) for name, answer in files.items()} == {
        "trailer.mp4": digest(VIDEO),
        "Grüße.vtt": digest(CAPTIONS),
    }
    assert [answer.headers["content-type"] for answer in files.values()] == [
        "video/mp4",
        "text/vtt",
    ]
    assert files["Grüße.vtt"].headers["content-disposition"] == (
        "attachment; filename=\"Gr__e.vtt\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.vtt"
    )
    assert [link["sizeBytes"] for link in result["links"]] == [len(VIDEO), len(CAPTIONS)]

    others = {
        setup.key(mine, "projects:write", "webhooks:manage"): (403, "missing_scope"),
        setup.key(theirs): (404, "not_found"),
        "none": (401, "unauthenticated"),
    }
    answers = {key: setup.call(key, "GET", path) for key in others}
    assert {key: (each.status_code, each.json()["code"]) for key, each in answers.items()} == others
    assert fetched(data["resultUrl"]).status_code == 401


def test_a_link_is_refused_once_its_time_is_over(opened: Open) -> None:
    setup = opened(RESULT_LINK_TTL=str(TTL_SECONDS))
    project, _ = setup.exported()
    asked = time.monotonic()
    [link, _] = setup.links(project)
    while fetched(link, range="bytes=0-0").is_success:
        assert time.monotonic() < asked + TTL_SECONDS + 1
    assert time.monotonic() > asked + TTL_SECONDS - 1
    assert fetched(link).status_code in {403, 410}
    assert fetched(setup.links(project)[0]).content == VIDEO


def test_a_link_ends_with_the_access_window(opened: Open) -> None:
    setup = opened()
    end = "2999-01-01T00:00:00.000Z"
    project, _ = setup.exported(accessExpiresAt=end)
    near = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + 60))
    setup.api_user.patch(f"/v1/projects/{project}", {"accessExpiresAt": near})
    result = setup.api_user.get(f"/v1/projects/{project}/result")
    assert [link["expiresAt"] for link in result["links"]] == [near, near]
    assert result["accessExpiresAt"] == near
    assert fetched(result["links"][0]["url"]).content == VIDEO


def test_after_deletion_the_result_is_gone_and_a_link_on_disk_with_it(
    opened: Open, media: dict[str, str]
) -> None:
    setup = opened()
    project, links = setup.exported()
    assert setup.call(setup.api_user.keys.api, "DELETE", f"/v1/projects/{project}").is_success
    result = setup.call(setup.api_user.keys.api, "GET", f"/v1/projects/{project}/result")
    assert (result.status_code, result.json()["code"]) == (410, "project_deleted")
    # S3 asks no one: there a link made before ends with its time alone.
    expected = [200, 200] if media else [410, 410]
    assert [fetched(link).status_code for link in links] == expected


def test_a_link_with_one_character_changed_is_refused(opened: Open) -> None:
    setup = opened()
    _, [link, _] = setup.exported()
    parts = urlsplit(link)
    start = len(f"{parts.scheme}://{parts.netloc}/")
    forged = [
        link[:place] + other + link[place + 1 :]
        for place in range(start, len(link))
        for other in ("A" if link[place] != "A" else "B")
    ]
    with httpx2.Client(trust_env=False, timeout=20) as client:
        assert {client.get(each).is_success for each in forged} == {False}
        assert client.get(link).content == VIDEO


def test_what_signs_one_file_does_not_sign_another(opened: Open) -> None:
    setup = opened()
    _, [video, captions] = setup.exported()
    if "?" in video:
        swapped = video.partition("?")[0] + "?" + captions.partition("?")[2]
    else:
        swapped = video[:-43] + captions[-43:]
    assert fetched(swapped).status_code in {403, 404}


def test_a_download_that_was_cut_off_goes_on_where_it_stopped(opened: Open) -> None:
    setup = opened()
    _, [link, _] = setup.exported()
    parts = urlsplit(link)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, PATIENCE_SECONDS)
    connection.request("GET", link.partition(parts.netloc)[2])
    answer = connection.getresponse()
    first, tag = answer.read(len(VIDEO) // 3), answer.headers["etag"]
    answer.close()
    connection.close()

    rest = fetched(link, range=f"bytes={len(first)}-", if_range=tag)
    assert rest.status_code == 206
    assert rest.headers["content-range"] == f"bytes {len(first)}-{len(VIDEO) - 1}/{len(VIDEO)}"
    assert digest(first + rest.content) == digest(VIDEO)
