"""Follows a download link: checks it, and opens its file."""

from dataclasses import dataclass

from cuepost.application.perform import Perform
from cuepost.domain.artifact import Artifact
from cuepost.domain.errors import FileReplaced, LinkExpired, LinkNotValid, MediaMissing
from cuepost.ports.media import Grant, MediaFile, MediaFolder
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock


@dataclass(frozen=True, slots=True)
class Download:
    """An open file, which the caller closes."""

    artifact: Artifact
    file: MediaFile


@dataclass(frozen=True, slots=True)
class FollowLink:
    perform: Perform
    clock: Clock
    folder: MediaFolder

    async def open(self, token: str) -> Download:
        """Open the file of a link; the errors reveal nothing to a client with an invalid link."""
        grant = self.folder.grant(token)
        if grant is None:
            raise LinkNotValid
        if grant.expires_at <= self.clock.now():
            raise LinkExpired
        artifact = await self.perform.read(lambda transaction: self._find(transaction, grant))
        file = await self.folder.open(artifact.key)
        if file is None:
            raise MediaMissing
        return Download(artifact, file)

    async def _find(self, transaction: Transaction, grant: Grant) -> Artifact:
        project = await transaction.projects.get(grant.account_id, grant.project_id)
        if project is None:
            # Its account was erased.
            raise LinkNotValid
        project.require_access(self.clock.now())
        for artifact in await transaction.projects.artifacts(project.account_id, project.id):
            if artifact.fingerprint == grant.fingerprint:
                return artifact
        raise FileReplaced
