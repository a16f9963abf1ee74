"""Assembles the pages as routes, for the application that they are mounted in."""

from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.routing import BaseRoute, Route

from cuepost.application.provider_sign_in import SignInWithProvider
from cuepost.application.service import Service
from cuepost.interfaces.web import (
    audit,
    bulk_retries,
    deliveries,
    doctor,
    endpoints,
    events,
    inbox,
    keys,
    live_rows,
    members,
    operator_handler,
    operator_pages,
    overview,
    portal,
    projects,
    provider_sign_in,
    records,
    secrets_once,
    sign_in,
    themes,
)
from cuepost.interfaces.web.accents import serve_accent
from cuepost.interfaces.web.operator_handler import OperatorPageHandler
from cuepost.interfaces.web.page_context import PageRoute, SiteContext
from cuepost.interfaces.web.page_handler import PageHandler
from cuepost.interfaces.web.protection import Cookies
from cuepost.interfaces.web.static_files import serve_favicon, serve_static
from cuepost.interfaces.web.unknown_pages import UnknownPages

# The order matters: /settings/webhooks/new must match before /settings/webhooks/{webhook_id}, and
# /sign-in/openid before /sign-in/{token}.
PAGES: tuple[PageRoute, ...] = (
    *provider_sign_in.ROUTES,
    *sign_in.ROUTES,
    *portal.ROUTES,
    *overview.ROUTES,
    *secrets_once.ROUTES,
    *live_rows.ROUTES,
    *bulk_retries.ROUTES,
    *deliveries.ROUTES,
    *endpoints.ROUTES,
    *events.ROUTES,
    *projects.ROUTES,
    *keys.ROUTES,
    *members.ROUTES,
    *audit.ROUTES,
    *records.ROUTES,
    *inbox.ROUTES,
    *doctor.ROUTES,
    *themes.ROUTES,
)
OPERATOR_PAGES: tuple[PageRoute, ...] = (*operator_handler.ROUTES, *operator_pages.ROUTES)


STATIC = (
    Route("/static/accent/{accent}.css", serve_accent, methods=["GET"]),
    Route("/static/{name:path}", serve_static, methods=["GET"]),
    Route("/favicon.ico", serve_favicon, methods=["GET"]),
)


def create_pages(
    service: Service,
    *,
    base_url: str,
    is_stopping: Callable[[], bool] = lambda: False,
    provider: SignInWithProvider | None = None,
    dispatcher: Callable[[], str] | None = None,
    for_operators: bool = True,
    frame_ancestors: tuple[str, ...] = (),
) -> list[BaseRoute]:
    """`is_stopping` ends open streams while the process shuts down.

    `dispatcher` says how the delivery of this process is doing, if it has one.
    """
    parts = urlsplit(base_url)
    cookies = Cookies(parts.scheme == "https", in_frames=bool(frame_ancestors))
    site = SiteContext(
        service,
        base_url,
        parts.path.rstrip("/"),
        cookies,
        is_stopping,
        provider,
        dispatcher,
        frame_ancestors,
    )
    routes: list[BaseRoute] = [*STATIC]
    routes += [
        Route(page.path, PageHandler(page, site).__call__, methods=["GET", "POST"])
        for page in PAGES
    ]
    if for_operators:
        routes += [
            Route(page.path, OperatorPageHandler(page, site).__call__, methods=["GET", "POST"])
            for page in OPERATOR_PAGES
        ]
    return [*routes, UnknownPages(site)]
