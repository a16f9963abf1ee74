"""`cuepost media put`: uploads exported files, for pipelines without their own media store."""

import json
import mimetypes
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from cuepost.domain.artifact import Artifact
from cuepost.domain.errors import Gone, MediaUnavailable
from cuepost.interfaces.cli.groups import OrderedGroup
from cuepost.interfaces.cli.output import json_option, key_values, print_result
from cuepost.interfaces.cli.params import ArtifactKind, MediaType
from cuepost.interfaces.cli.runtime import CannotRun, CommandContext, use

UNKNOWN_TYPE = "application/octet-stream"
# Types that the system's list often lacks.
_TYPES = {".srt": "application/x-subrip", ".vtt": "text/vtt", ".ass": "text/x-ssa"}


@dataclass(frozen=True, slots=True)
class ExportedFile:
    path: Path
    project_id: UUID
    kind: str
    name: str
    content_type: str

    async def store(self, context: CommandContext) -> Artifact:
        with self.path.open("rb") as source:
            size = os.fstat(source.fileno()).st_size
            return await context.service.media.put(
                self.project_id,
                source,
                size,
                kind=self.kind,
                name=self.name,
                content_type=self.content_type,
                progress=_progress_of(size),
            )


@click.group(cls=OrderedGroup)
def media() -> None:
    """Store exported files for download links."""


@media.command()
@click.argument(
    "path",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
)
@click.option(
    "--project",
    "project_id",
    type=click.UUID,
    required=True,
    help="The project that the file belongs to.",
)
@click.option(
    "--kind",
    type=ArtifactKind(),
    required=True,
    help="The kind of file, such as video, captions or audio.",
)
@click.option("--name", help="The file name for downloads.  [default: the name of FILE]")
@click.option(
    "--content-type", type=MediaType(), help="The media type.  [default: from the file extension]"
)
@json_option
def put(
    *,
    path: Path,
    project_id: UUID,
    kind: str,
    name: str | None,
    content_type: str | None,
    as_json: bool,
) -> None:
    """Store an exported file and print the artifact to report.

    The file is copied atomically to the media store (CUEPOST_MEDIA_URL). It can be downloaded after
    a 'completed' milestone has listed it as an artifact. The command prints that artifact; with
    --json as one object, ready for the list 'artifacts'. If the media store is a folder, run the
    command as the user that the service runs as.

    \b
    Examples:
      cuepost media put trailer.mp4 --project 0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90 --kind video
      cuepost media put de.vtt --project 0198… --kind captions --name "Trailer (Deutsch).vtt"
    """
    saved_as = path.name if name is None else name
    file = ExportedFile(path, project_id, kind, saved_as, content_type or _type_of(saved_as))
    try:
        artifact = use(file.store, missing=f"There is no project {project_id}.")
    except (Gone, MediaUnavailable) as error:
        raise CannotRun(str(error)) from error
    print_result(as_json, artifact_json(artifact), _words(artifact, project_id))


def artifact_json(artifact: Artifact) -> dict[str, Any]:
    """The form that POST /v1/milestones accepts."""
    return {
        "kind": artifact.kind,
        "name": artifact.name,
        "key": artifact.key,
        "contentType": artifact.content_type,
        "sizeBytes": artifact.size_bytes,
    }


def _type_of(name: str) -> str:
    extension = os.path.splitext(name)[1].lower()
    return _TYPES.get(extension) or mimetypes.guess_type(name)[0] or UNKNOWN_TYPE


def _progress_of(size: int) -> Callable[[int], None]:
    """Show a progress line if standard error is a terminal."""
    done, shown = 0, -1

    def report(count: int) -> None:
        nonlocal done, shown
        done += count
        share = min(100 * done // size, 100) if size else 100
        if share != shown and sys.stderr.isatty():
            click.echo(f"\rStoring … {share} %", nl=share == 100, err=True)
        shown = share

    return report


def _words(artifact: Artifact, project_id: UUID) -> str:
    known = {
        "Name": artifact.name,
        "Type": artifact.content_type,
        "Size": f"{artifact.size_bytes:,} bytes",
        "Key": artifact.key,
    }
    report = {
        "reportId": f"{project_id}/completed",
        "projectId": str(project_id),
        "status": "completed",
        "artifacts": [artifact_json(artifact)],
    }
    return (
        f"Stored.\n\n{key_values(known)}\n\n"
        "Report it with the milestone: POST /v1/milestones\n\n"
        + json.dumps({"milestones": [report]}, ensure_ascii=False, indent=2)
    )
