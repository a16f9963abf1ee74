"""`GET` and `HEAD /media/<token>`: the file behind a download link."""

import logging
from collections.abc import Sequence

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from cuepost.application.admission import RequestDeadline
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
from cuepost.interfaces.media.refusals import (
    COMMON_HEADERS,
    RequestRejected,
    broken,
    busy,
    rejection_of,
    send_problem,
)
from cuepost.interfaces.media.socket_handle import line_of
from cuepost.interfaces.media.streaming import Streamer
from cuepost.log_lines import log_store_error
from cuepost.ports.store import Contention, StoreUnavailable

PATH = "/media/{token}"
# The name of these requests in metrics and logs; their path contains a secret token.
OPERATION = ("cuepost.operation", "downloadMedia")

Headers = list[tuple[bytes, bytes]]

logger = logging.getLogger("cuepost.media")


def media_routes(service: Service, streamer: Streamer | None = None) -> Sequence[Route]:
    """Empty if another server, such as S3, serves the files."""
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
        except RequestRejected as reason:
            await send_problem(reason, send, head=scope["method"] == "HEAD")
            return
        try:
            await self._serve(download, scope, receive, send)
        finally:
            download.file.close()

    async def _open(self, token: str) -> Download:
        try:
            with RequestDeadline(self._service.request_timeout):
                return await self._downloads.open(token)
        except Refused as refused:
            raise rejection_of(refused) from None
        except (StoreUnavailable, Contention) as error:
            log_store_error(logger, "store_unavailable", error, OPERATION[1])
            raise busy(self._service.retry_after()) from None
        except Exception:
            logger.exception("event=internal_error operation=%s", OPERATION[1])
            raise broken() from None

    async def _serve(self, download: Download, scope: Scope, receive: Receive, send: Send) -> None:
        file, head = download.file, scope["method"] == "HEAD"
        requested = _headers(scope)
        known = Validators(f'"{file.version}"', file.modified_at, self._downloads.clock.now())
        status = refusal(requested, known)
        # Ranges apply only to GET; HEAD describes the whole file.
        chosen = None if head else part(requested, file.size, known)
        if status == PRECONDITION_FAILED:
            await send_problem(_precondition_failed(), send, head=head)
        elif status == NOT_MODIFIED:
            await _start(send, NOT_MODIFIED, _identity(known))
            await send({"type": "http.response.body", "body": b""})
        elif chosen == UNSATISFIABLE:
            await send_problem(_range_not_satisfiable(file.size), send, head=head)
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
        raise RequestRejected(
            405, "method_not_allowed", "Method not allowed. Use GET or HEAD.", allowed
        )


def _precondition_failed() -> RequestRejected:
    return RequestRejected(
        PRECONDITION_FAILED,
        "precondition_failed",
        "The file does not match the condition of the request.",
    )


def _range_not_satisfiable(size: int) -> RequestRejected:
    whole = ((b"content-range", f"bytes */{size}".encode()),)
    return RequestRejected(
        UNSATISFIABLE, "range_not_satisfiable", f"The file has {size} bytes.", whole
    )


def _headers(scope: Scope) -> dict[str, str]:
    """Join repeated headers into a list (RFC 9110, section 5.3)."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _identity(known: Validators) -> Headers:
    # Clients may cache the file but must revalidate it, because access can end.
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
    await send(
        {"type": "http.response.start", "status": status, "headers": [*COMMON_HEADERS, *headers]}
    )
