"""`cuepost media put`: a file goes in, and out comes what a milestone takes."""

import json
import os
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from cuepost.bootstrap.runtime import ServiceRuntime
from cuepost.domain.access import ACCOUNT_SCOPES, Caller, Interface
from cuepost.domain.project import Origin, ProjectKind
from cuepost.interfaces.cli.runtime import CommandContext
from cuepost.interfaces.rest.milestones import ReportedArtifact
from tests.interfaces.cli.terminal import Terminal
from tests.interfaces.cli.test_help import shown_on_a_terminal

UNKNOWN = "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90"


def made_project(terminal: Terminal, *, deleted: bool = False) -> str:
    account = UUID(terminal.json("setup")["accountId"])
    owner = Caller(Interface.REST, "key:test", account, ACCOUNT_SCOPES)

    async def make(context: CommandContext) -> str:
        service = context.service
        made = await service.perform.change(
            lambda transaction: service.projects.create(
                transaction,
                owner,
                name="Trailer",
                kind=ProjectKind.VIDEO,
                origin=Origin.API,
                access_expires_at=None,
            )
        )
        if deleted:
            await service.perform.change(
                lambda transaction: service.projects.delete(transaction, owner, made.id)
            )
        return str(made.id)

    return ServiceRuntime(terminal.environ).use(make)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "trailer.mp4"
    path.write_bytes(b"a short film")
    return path


def put(terminal: Terminal, file: Path, project: str, *more: str) -> Any:
    return terminal.json("media", "put", str(file), "--project", project, "--kind", "video", *more)


def media_of(terminal: Terminal) -> Path:
    return Path(terminal.environ["CUEPOST_DATA_DIR"]) / "media"


def test_a_stored_file_is_told_as_a_milestone_takes_it(terminal: Terminal, file: Path) -> None:
    project = made_project(terminal)
    artifact = put(terminal, file, project)
    assert artifact == {
        "kind": "video",
        "name": "trailer.mp4",
        "key": artifact["key"],
        "contentType": "video/mp4",
        "sizeBytes": 12,
    }
    assert (media_of(terminal) / artifact["key"]).read_bytes() == b"a short film"
    assert artifact["key"].startswith(f"{project}/")
    taken = msgspec.convert(artifact, ReportedArtifact).artifact()
    assert (taken.key, taken.size_bytes) == (artifact["key"], 12)


def test_a_newcomer_is_shown_the_milestone_to_report(empty_sqlite: Terminal, file: Path) -> None:
    project = made_project(empty_sqlite)
    words = empty_sqlite.words(
        "media", "put", str(file), "--project", project, "--kind", "video", "--name", "Größe.mp4"
    )
    assert words.startswith("Stored.\n\n  Name  Größe.mp4\n  Type  video/mp4\n  Size  12 bytes\n")
    _, _, shown = words.partition("POST /v1/milestones\n\n")
    [milestone] = json.loads(shown)["milestones"]
    assert (milestone["projectId"], milestone["status"]) == (project, "completed")
    assert [each["name"] for each in milestone["artifacts"]] == ["Größe.mp4"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.vtt", "text/vtt"),
        ("a.SRT", "application/x-subrip"),
        ("a.webm", "video/webm"),
        ("a", "application/octet-stream"),
        ("a.xyz123", "application/octet-stream"),
    ],
)
def test_the_type_follows_from_the_ending(
    empty_sqlite: Terminal, file: Path, name: str, expected: str
) -> None:
    project = made_project(empty_sqlite)
    assert put(empty_sqlite, file, project, "--name", name)["contentType"] == expected


def test_the_type_can_be_said(empty_sqlite: Terminal, file: Path) -> None:
    project = made_project(empty_sqlite)
    made = put(empty_sqlite, file, project, "--content-type", "video/mp4; codecs=av1")
    assert made["contentType"] == "video/mp4; codecs=av1"


def test_two_of_the_same_name_stay_two(empty_sqlite: Terminal, file: Path) -> None:
    project = made_project(empty_sqlite)
    keys = {put(empty_sqlite, file, project)["key"] for _ in range(2)}
    assert {(media_of(empty_sqlite) / key).read_bytes() for key in keys} == {b"a short film"}
    assert len(keys) == 2


def test_what_is_stored_is_for_its_owner_alone(empty_sqlite: Terminal, file: Path) -> None:
    path = media_of(empty_sqlite) / put(empty_sqlite, file, made_project(empty_sqlite))["key"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--project", UNKNOWN, "--kind", "video"), 1, f"There is no project {UNKNOWN}."),
        (("--project", "one", "--kind", "video"), 2, "'one' is not a valid UUID."),
        (("--project", UNKNOWN), 2, "Missing option '--kind'."),
        (("--project", UNKNOWN, "--kind", " "), 2, "expected 1 to 50 printable characters."),
        (
            ("--project", UNKNOWN, "--kind", "video", "--name", "a/b"),
            2,
            "Give a plain file name, without a folder.",
        ),
        (
            ("--project", UNKNOWN, "--kind", "video", "--content-type", "mp4"),
            2,
            "'mp4' is not a media type such as video/mp4.",
        ),
    ],
)
def test_what_cannot_be_stored_is_said_in_a_line(
    empty_sqlite: Terminal, file: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    made_project(empty_sqlite)
    ended, words = empty_sqlite.refusal("media", "put", str(file), *arguments)
    assert ended == code
    assert words.splitlines()[-1].endswith(said)
    assert not media_of(empty_sqlite).exists()


def test_progress_is_shown_on_a_terminal_alone(empty_sqlite: Terminal, tmp_path: Path) -> None:
    project, file = made_project(empty_sqlite), tmp_path / "film.mp4"
    file.write_bytes(bytes(4 * 1024 * 1024))
    arguments = ("media", "put", str(file), "--project", project, "--kind", "video", "--json")
    shown = shown_on_a_terminal(tmp_path / "data", *arguments).replace("\r\n", "\n")
    steps = "".join(f"\rStoring … {share} %" for share in (25, 50, 75, 100))
    assert shown.startswith(f"{steps}\n{{")


def test_a_deleted_project_gets_no_files(terminal: Terminal, file: Path) -> None:
    project = made_project(terminal, deleted=True)
    arguments = ("media", "put", str(file), "--project", project, "--kind", "video")
    assert terminal.refusal(*arguments) == (1, "Error: The project was deleted.\n")


def test_a_file_that_is_not_there_is_named(empty_sqlite: Terminal, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.mp4")
    arguments = ("media", "put", gone, "--project", UNKNOWN, "--kind", "video")
    code, words = empty_sqlite.refusal(*arguments)
    assert (code, f"File '{gone}' does not exist." in words) == (2, True)


def test_a_folder_that_cannot_be_written_is_named(empty_sqlite: Terminal, file: Path) -> None:
    project = made_project(empty_sqlite)
    media_of(empty_sqlite).symlink_to(os.devnull)
    arguments = ("media", "put", str(file), "--project", project, "--kind", "video")
    code, words = empty_sqlite.refusal(*arguments)
    assert (code, words.count("\n")) == (1, 1)
    assert str(media_of(empty_sqlite)) in words
