"""Styles and scripts, compressed once and cached under the digest of their content."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

IMMUTABLE = "public, max-age=31536000, immutable"
TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "ico": "image/x-icon",
}
NAMES = (
    "vendor/htmx-2.0.11.min.js",
    "vendor/pico-2.1.1.min.css",
    "pages.css",
    "pages.js",
    "keyboard.js",
    "icon.svg",
    "favicon.ico",
)


@dataclass(frozen=True, slots=True)
class StaticFile:
    content: bytes
    compressed: bytes
    media_type: str
    version: str


@cache
def static_files() -> dict[str, StaticFile]:
    folder = files(__package__).joinpath("static")
    return {name: _file(name, folder.joinpath(name).read_bytes()) for name in NAMES}


def _file(name: str, content: bytes) -> StaticFile:
    version = hashlib.sha256(content).hexdigest()[:12]
    return StaticFile(
        content, gzip.compress(content, mtime=0), TYPES[name.rpartition(".")[2]], version
    )


def address_of(name: str) -> str:
    return f"/static/{name}?v={static_files()[name].version}"


async def serve_favicon(request: Request) -> Response:
    """Browsers ask for this address by themselves, also beside documents that are not pages."""
    return _served(request, "favicon.ico")


async def serve_static(request: Request) -> Response:
    return _served(request, request.path_params["name"])


def _served(request: Request, name: str) -> Response:
    found = static_files().get(name)
    if found is None:
        return Response("Not found.", 404, media_type="text/plain")
    current = request.query_params.get("v") == found.version
    headers = {
        "cache-control": IMMUTABLE if current else "no-cache",
        "content-type": found.media_type,
        "vary": "accept-encoding",
        "x-content-type-options": "nosniff",
    }
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.compressed, headers=headers | {"content-encoding": "gzip"})
    return Response(found.content, headers=headers)
