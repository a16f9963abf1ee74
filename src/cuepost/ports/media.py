"""Where the files of exports lie, and the links that they are fetched by."""

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
        """An address that gives the file to whoever has it, until then and no longer."""
        ...


class MediaShelf(Protocol):
    async def put(self, artifact: Artifact, source: BinaryIO, progress: Progress) -> None:
        """Store the file under its key, whole or not at all; `progress` hears of bytes done."""
        ...

    async def remove(self, key: str) -> None:
        """Take the file away; one that is not there is gone already."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """What the service itself has once put into a link."""

    account_id: UUID
    project_id: UUID
    fingerprint: bytes
    expires_at: datetime


class MediaFile(Protocol):
    """A file that is open; it stays what it was when it was opened, whoever replaces it."""

    @property
    def size(self) -> int: ...
    @property
    def modified_at(self) -> datetime: ...
    @property
    def version(self) -> str:
        """Another one whenever the content is another one; letters, digits and '-'."""
        ...

    async def read(self, start: int, count: int) -> bytes:
        """At most that many bytes; none where the file has been cut off meanwhile."""
        ...

    async def send(self, descriptor: int, start: int, count: int) -> int:
        """To a socket that does not block: as many of these bytes as it has room for.

        None where the file has been cut off; BlockingIOError where there is no room at all.
        """
        ...

    def close(self) -> None: ...


class MediaFolder(Protocol):
    """Files that the service hands out itself."""

    def grant(self, token: str) -> Grant | None:
        """What is in the token of a link; None unless it was made here, letter by letter."""
        ...

    async def open(self, key: str) -> MediaFile | None:
        """None where there is no such file, or it lies anywhere else but in the folder."""
        ...


class _Nowhere:
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
    """`folder` is None where somebody else, such as S3, answers to the links."""

    links: MediaLinks
    shelf: MediaShelf
    folder: MediaFolder | None = None


NO_MEDIA = Media(_Nowhere(), _Nowhere())
