"""The page for an address that does not exist, for clients that accept HTML."""

from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import Match, Route

from cuepost.domain.errors import NotFound
from cuepost.interfaces.web.page_context import PageContext, PageRoute, SiteContext
from cuepost.interfaces.web.page_handler import PageHandler

PATH = "/{unknown:path}"
# Other interfaces answer below these paths, in their own format.
NOT_PAGES = ("/v1/", "/mcp", "/static/", "/schemas/", "/media/")


async def show(context: PageContext) -> Response:
    raise NotFound("This page does not exist.")


class UnknownPages(Route):
    """The last of all routes. Without a match the REST interface answers with a problem."""

    def __init__(self, site: SiteContext) -> None:
        page = PageRoute(PATH, get=show, is_open=True)
        super().__init__(PATH, PageHandler(page, site).__call__, methods=["GET"])
        self._root = site.root

    def matches(self, scope: MutableMapping[str, Any]) -> tuple[Match, MutableMapping[str, Any]]:
        is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not is_read or not accepts_html(Headers(scope=scope).get("accept", "")):
            return Match.NONE, {}
        if scope["path"].removeprefix(self._root).startswith(NOT_PAGES):
            return Match.NONE, {}
        return super().matches(scope)


def accepts_html(accept: str) -> bool:
    """Named explicitly, as browsers do; `*/*` is what programs send."""
    kinds = (each.partition(";")[0].strip().lower() for each in accept.split(","))
    return "text/html" in kinds
