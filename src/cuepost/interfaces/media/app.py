"""`GET` and `HEAD /media/<token>`: the file behind a download link."""

import logging
from collections.abc import Sequence

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from cuepost.application.deadline import request_deadline
from cuepost.application.download import Download, FollowLink
from cuepost.application.service import Service
from cuepost.domain.errors import Refused
from cuepost.interfaces.media.conditions import (
    NOT_MODIFIED,
    PRECONDITION_FAILED,
    UNSATISFIABLE,
    Span,
    Validators,
    part,
    refusal,
)
from cuepost.interfaces.media.refusals import STANDING, TurnedAway, broken, busy, tell, turned_away
from cuepost.interfaces.media.socket_handle import line_of
from cuepost.interfaces.media.streaming import Streamer
from cuepost.log_lines import log_store_error
from cuepost.ports.store import Contention, StoreUnavailable

PATH = "/media/{token}"
# The name under which requests are counted and logged; their address is a secret.
OPERATION = ("cuepost.operation", "downloadMedia")

Headers = list[tuple[bytes, bytes]]

logger = logging.getLogger("cuepost.media")


def media_routes(service: Service, streamer: Streamer | None = None) -> Sequence[Route]:
    """None where somebody else answers to the links."""
    if service.downloads is None:
        return []
    return [Route(PATH, MediaApp(service, service.downloads, streamer or Streamer()))]


class MediaApp:
    def __init__(self, service: Service, downloads: FollowLink, streamer: Streamer) -> None:
        self._service = service
        self._downloads = downloads
        self._streamer = streamer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, operation = OPERATION
        scope[name] = operation
        try:
            _require_method(scope["method"])
            download = await self._open(scope["path_params"]["token"])
        except TurnedAway as reason:
            await tell(reason, send, head=scope["method"] == "HEAD")
            return
        try:
            await self._hand_out(download, scope, receive, send)
        finally:
            download.file.close()

    async def _open(self, token: str) -> Download:
        try:
            async with request_deadline(self._service.request_timeout):
                return await self._downloads.open(token)
        except Refused as refused:
            raise turned_away(refused) from None
        except (StoreUnavailable, Contention) as error:
            log_store_error(logger, "store_unavailable", error, OPERATION[1])
            raise busy(self._service.retry_after()) from None
        except Exception:
            logger.exception("event=internal_error operation=%s", OPERATION[1])
            raise broken() from None

    async def _hand_out(
        self, download: Download, scope: Scope, receive: Receive, send: Send
    ) -> None:
        file, head = download.file, scope["method"] == "HEAD"
        wanted = _headers(scope)
        known = Validators(f'"{file.version}"', file.modified_at, self._downloads.clock.now())
        status = refusal(wanted, known)
        # A part is only of a GET; HEAD tells of the whole file.
        chosen = None if head else part(wanted, file.size, known)
        if status == PRECONDITION_FAILED:
            await tell(_changed(), send, head=head)
        elif status == NOT_MODIFIED:
            await _start(send, NOT_MODIFIED, _identity(known))
            await send({"type": "http.response.body", "body": b""})
        elif chosen == UNSATISFIABLE:
            await tell(_no_such_part(file.size), send, head=head)
        else:
            span = chosen if isinstance(chosen, Span) else Span(0, file.size)
            headers = _description(download, span, known)
            if chosen is not None:
                headers.append(_content_range(span, file.size))
            await _start(send, 200 if chosen is None else 206, headers)
            if head or not len(span):
                await send({"type": "http.response.body", "body": b""})
            else:
                await self._streamer.stream(file, span, receive, send, line_of(scope))


def _require_method(method: str) -> None:
    if method not in {"GET", "HEAD"}:
        allowed = ((b"allow", b"GET, HEAD"),)
        raise TurnedAway(405, "method_not_allowed", "This address answers to GET, HEAD.", allowed)


def _changed() -> TurnedAway:
    return TurnedAway(
        PRECONDITION_FAILED, "precondition_failed", "The file is not the one that you asked for."
    )


def _no_such_part(size: int) -> TurnedAway:
    whole = ((b"content-range", f"bytes */{size}".encode()),)
    return TurnedAway(UNSATISFIABLE, "range_not_satisfiable", f"The file has {size} bytes.", whole)


def _headers(scope: Scope) -> dict[str, str]:
    """A header that comes twice is one list, as the standard has it."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _identity(known: Validators) -> Headers:
    # May be kept by whoever fetched it, but asked for again each time: it can be gone by then.
    return [
        (b"cache-control", b"private, no-cache"),
        (b"etag", known.tag.encode()),
        (b"last-modified", known.http_date().encode()),
    ]


def _description(download: Download, span: Span, known: Validators) -> Headers:
    artifact = download.artifact
    return [
        *_identity(known),
        (b"accept-ranges", b"bytes"),
        (b"content-disposition", artifact.disposition.encode("ascii")),
        (b"content-length", str(len(span)).encode()),
        (b"content-type", artifact.content_type.encode("ascii")),
    ]


def _content_range(span: Span, size: int) -> tuple[bytes, bytes]:
    return b"content-range", f"bytes {span.start}-{span.stop - 1}/{size}".encode()


async def _start(send: Send, status: int, headers: Headers) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*STANDING, *headers]})
