"""The kit's result client against the real service."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cuepost_receiver.results import Problem, ResultClient, ResultFailed
from tests.e2e.first_steps import ApiUser, keys_in, request
from tests.support.service_process import ServiceProcess, free_port


@pytest.fixture
def api_user(tmp_path: Path) -> Iterator[ApiUser]:
    port = str(free_port())
    with ServiceProcess({"DATA_DIR": str(tmp_path / "data"), "PORT": port}) as service:
        keys = keys_in(service.greeting)
        assert keys is not None
        yield ApiUser(f"http://127.0.0.1:{port}", keys)


def problem(call: Callable[[], object]) -> Problem:
    with pytest.raises(ResultFailed) as caught:
        call()
    return caught.value.problem


def test_it_follows_the_address_of_an_event(api_user: ApiUser) -> None:
    client = ResultClient(api_user.base_url, api_user.keys.api)
    project = api_user.finish_a_project()
    [event] = api_user.get(f"/v1/events?projectId={project}&type=project.completed")["data"]

    found = client.fetch(event["body"]["data"]["resultUrl"])

    assert (found.project_id, found.status, found.stage) == (project, "completed", "export")


def test_what_the_service_refuses_is_a_problem_of_its_own(api_user: ApiUser) -> None:
    client = ResultClient(api_user.base_url, api_user.keys.api)
    stranger = ResultClient(api_user.base_url, "cpk_stranger")
    done = api_user.finish_a_project()
    fresh = api_user.post("/v1/projects", {"name": "Trailer"})["id"]

    def address(project: str) -> str:
        return f"{api_user.base_url}/v1/projects/{project}/result"

    assert problem(lambda: client.fetch(address(fresh))) is Problem.NOT_READY
    assert problem(lambda: stranger.fetch(address(done))) is Problem.UNAUTHORIZED
    assert problem(lambda: client.fetch(address(f"{done[:-4]}0000"))) is Problem.NOT_FOUND
    request(api_user.base_url, api_user.keys.api, "DELETE", f"/v1/projects/{done}")
    assert problem(lambda: client.fetch(address(done))) is Problem.GONE
