"""Copies a file into the media store, for pipelines that do not write to it themselves."""

from dataclasses import dataclass, replace
from typing import BinaryIO
from uuid import UUID

from cuepost.application.perform import Perform
from cuepost.domain.artifact import NAME_FAULT, Artifact, is_file_name
from cuepost.domain.errors import FieldError, Invalid, NotFound
from cuepost.domain.project import Project
from cuepost.ports.media import MediaFiles, Progress
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, IdSource

LONGEST_STEP_BYTES = 255


@dataclass(frozen=True, slots=True)
class StoreMedia:
    perform: Perform
    clock: Clock
    ids: IdSource
    files: MediaFiles

    async def put(
        self,
        project_id: UUID,
        source: BinaryIO,
        size_bytes: int,
        *,
        kind: str,
        name: str,
        content_type: str,
        progress: Progress = lambda _: None,
    ) -> Artifact:
        """Store the file; return the artifact to report, before which no link to it exists.

        Every file gets a new key, so that another export does not replace a file that is being
        downloaded. The size is what was stored, even if the source grew in between.
        """
        now = self.clock.now()
        if not is_file_name(name):
            raise Invalid(FieldError("name", *NAME_FAULT))
        key = f"{project_id}/{self.ids(now)}/{_step_of(name)}"
        project = await self.perform.read(lambda transaction: _find(transaction, project_id))
        project.require_access(now)
        artifact = Artifact(kind, name, key, content_type, size_bytes)
        stored = 0

        def note(count: int) -> None:
            nonlocal stored
            stored += count
            progress(count)

        await self.files.put(artifact, source, note)
        return replace(artifact, size_bytes=stored)


def _step_of(name: str) -> str:
    """The file's own name, unless it is too long for a file system."""
    return name if len(name.encode()) <= LONGEST_STEP_BYTES else "file"


async def _find(transaction: Transaction, project_id: UUID) -> Project:
    owners = await transaction.projects.owners([project_id])
    if project_id not in owners:
        raise NotFound
    project = await transaction.projects.get(owners[project_id], project_id)
    if project is None:
        raise NotFound
    return project
