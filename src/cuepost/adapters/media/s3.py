"""Media in S3 or a compatible store: links are presigned (SigV4), and S3 serves the files.

Options that are not set come from the usual `AWS_…` variables. Credentials always come from there,
or from the role of the machine or container.
"""

import asyncio
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit, urlunsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from cuepost.domain.artifact import Artifact
from cuepost.domain.errors import MediaUnavailable
from cuepost.domain.project import Project
from cuepost.ports.media import Progress

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

# Signing may first have to refresh the credentials of a role; this limits how long a caller waits.
SIGNING_SECONDS = 5.0
PIECE = 1024 * 1024
RETRIES = 3
_SECOND = timedelta(seconds=1)

logger = logging.getLogger("cuepost.media")


class S3Media:
    def __init__(self, store: S3Store) -> None:
        self._store = store

    @classmethod
    def of(
        cls,
        bucket: str,
        prefix: str = "",
        *,
        endpoint: str | None = None,
        region: str | None = None,
        path_style: bool | None = None,
    ) -> "S3Media":
        chosen: S3Config = {}
        if region is not None:
            chosen["region"] = region
        if path_style is not None:
            chosen["virtual_hosted_style_request"] = not path_style
        if endpoint is not None:
            at_bucket = path_style is False
            chosen["endpoint"] = _below(endpoint, bucket) if at_bucket else endpoint
        plain = endpoint is not None and endpoint.startswith("http://")
        options: ClientConfig = {"allow_http": True} if plain else {}
        store = S3Store(
            bucket,
            prefix=prefix or None,
            config=chosen,
            client_options=options,
            retry_config={"max_retries": RETRIES},
        )
        return cls(store)

    async def link(
        self, project: Project, artifact: Artifact, now: datetime, expires_at: datetime
    ) -> str:
        # S3 counts whole seconds; rounding down keeps a link from living too long.
        lifetime = (expires_at - now) // _SECOND * _SECOND
        try:
            async with asyncio.timeout(SIGNING_SECONDS):
                return await obstore.sign_async(self._store, "GET", artifact.key, lifetime)
        except (BaseError, TimeoutError) as error:
            raise _unavailable(error) from error

    async def put(self, artifact: Artifact, source: BinaryIO, progress: Progress) -> None:
        try:
            await obstore.put_async(
                self._store,
                artifact.key,
                _pieces(source, progress),
                # A presigned link cannot carry these headers, so they are stored with the object.
                attributes={
                    "Content-Disposition": artifact.disposition,
                    "Content-Type": artifact.content_type,
                },
            )
        except BaseError as error:
            raise _unavailable(error) from error

    async def remove(self, key: str) -> None:
        try:
            await obstore.delete_async(self._store, key)
        except FileNotFoundError:
            return
        except BaseError as error:
            raise _unavailable(error) from error


def _unavailable(error: Exception) -> MediaUnavailable:
    """Only the operator sees the details, because they may name hosts, buckets and keys."""
    logger.warning("event=media_unavailable cause=%s %s", type(error).__name__, _line(error))
    return MediaUnavailable()


def _line(error: Exception) -> str:
    text = "timed out waiting for credentials" if isinstance(error, TimeoutError) else str(error)
    return " ".join(text.split())[:500]


def _pieces(source: BinaryIO, progress: Progress) -> Iterator[bytes]:
    while piece := source.read(PIECE):
        progress(len(piece))
        yield piece


def _below(endpoint: str, bucket: str) -> str:
    """Turns `https://host` into `https://bucket.host`."""
    parts = urlsplit(endpoint)
    return urlunsplit(parts._replace(netloc=f"{bucket}.{parts.netloc}"))
