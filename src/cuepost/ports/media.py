"""Where the files of exports are stored, and the links to download them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol
from uuid import UUID

from cuepost.domain.artifact import Artifact
from cuepost.domain.errors import MediaUnavailable
from cuepost.domain.project import Project

Progress = Callable[[int], None]


class MediaLinks(Protocol):
    async def link(
        self, project: Project, artifact: Artifact, now: datetime, expires_at: datetime
    ) -> str:
        """A URL that gives access to the file until `expires_at`, without a key."""
        ...


class MediaFiles(Protocol):
    async def put(self, artifact: Artifact, source: BinaryIO, progress: Progress) -> None:
        """Store the file under its key, atomically; `progress` is called with the bytes done."""
        ...

    async def remove(self, key: str) -> None:
        """Delete the file if it exists."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """What the token of a link contains."""

    account_id: UUID
    project_id: UUID
    fingerprint: bytes
    expires_at: datetime


class MediaFile(Protocol):
    """An open file; replacing the file in the store does not change what is read here."""

    @property
    def size(self) -> int: ...
    @property
    def modified_at(self) -> datetime: ...
    @property
    def version(self) -> str:
        """Changes whenever the content changes; letters, digits and '-'."""
        ...

    async def read(self, start: int, count: int) -> bytes:
        """Read at most `count` bytes; none if the file was truncated."""
        ...

    async def send(self, descriptor: int, start: int, count: int) -> int:
        """Send to a non-blocking socket as many of these bytes as it accepts; return how many.

        Returns 0 if the file was truncated; raises BlockingIOError if the socket accepts none.
        """
        ...

    def close(self) -> None: ...


class MediaFolder(Protocol):
    """Files that the service itself sends to clients."""

    def grant(self, token: str) -> Grant | None:
        """Decode the token of a link; None unless this service signed exactly this token."""
        ...

    async def open(self, key: str) -> MediaFile | None:
        """None if there is no such file, or if it is outside the folder."""
        ...


class _NoMedia:
    async def link(
        self, project: Project, artifact: Artifact, now: datetime, expires_at: datetime
    ) -> str:
        raise MediaUnavailable

    async def put(self, artifact: Artifact, source: BinaryIO, progress: Progress) -> None:
        raise MediaUnavailable

    async def remove(self, key: str) -> None:
        raise MediaUnavailable


@dataclass(frozen=True, slots=True)
class Media:
    """`folder` is None if another service, such as S3, serves the links."""

    links: MediaLinks
    files: MediaFiles
    folder: MediaFolder | None = None


NO_MEDIA = Media(_NoMedia(), _NoMedia())
