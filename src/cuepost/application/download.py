"""A download link is followed: is it ours, does it still hold, and where is its file?"""

from dataclasses import dataclass

from cuepost.application.perform import Perform
from cuepost.domain.artifact import Artifact
from cuepost.domain.errors import FileReplaced, LinkExpired, LinkNotValid, MediaMissing
from cuepost.ports.media import Grant, MediaFile, MediaFolder
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock


@dataclass(frozen=True, slots=True)
class Download:
    """The file is open; whoever got it closes it."""

    artifact: Artifact
    file: MediaFile


@dataclass(frozen=True, slots=True)
class FollowLink:
    perform: Perform
    clock: Clock
    folder: MediaFolder

    async def open(self, token: str) -> Download:
        """What was not signed here learns nothing; nor does an old link learn what came after."""
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
            # Its account was erased, and nothing remembers it.
            raise LinkNotValid
        project.require_access(self.clock.now())
        for artifact in await transaction.projects.artifacts(project.account_id, project.id):
            if artifact.fingerprint == grant.fingerprint:
                return artifact
        raise FileReplaced
