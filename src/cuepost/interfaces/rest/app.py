"""Assembles the REST interface; it does no I/O before the first request."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from cuepost.application.service import Service
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.interfaces.rest.answers import COMMON_HEADERS
from cuepost.interfaces.rest.discovery import DiscoveryPages
from cuepost.interfaces.rest.observing import RequestTelemetry, RestApp
from cuepost.interfaces.rest.open_pages import HealthChecks, HealthPages, ReferencePages
from cuepost.interfaces.rest.operation import Operation
from cuepost.interfaces.rest.path_handler import PathHandler, transmit
from cuepost.interfaces.rest.problems import MEDIA_TYPE, Rejected, UnknownPath, problem_of
from cuepost.interfaces.rest.table import OPERATIONS
from cuepost.ports.system import Entropy


def create_app(
    service: Service,
    *,
    base_url: str,
    health: HealthChecks,
    registry: CollectorRegistry | None = None,
    requests: RequestTelemetry | None = None,
    further_routes: Sequence[BaseRoute] = (),
    with_metrics: bool = True,
) -> Starlette:
    """`registry` has the metrics that `/metrics` shows, including `requests`.

    `further_routes` are the routes of other interfaces.
    """
    base_url = base_url.rstrip("/")
    registry = CollectorRegistry() if registry is None else registry
    document = partial(_document, base_url, service.webhooks.policy)
    handlers = _handlers(service, base_url)
    app = RestApp(
        handlers,
        routes=[
            *(Route(path, handler) for path, handler in handlers.items()),
            *HealthPages(health, registry, service.access.entropy).routes(
                with_metrics=with_metrics
            ),
            *ReferencePages(document).routes(),
            *DiscoveryPages(base_url).routes(),
            *further_routes,
        ],
        telemetry=requests or RequestTelemetry(registry),
        entropy=service.access.entropy,
    )
    return _with_fallback(app)


def create_health_app(
    health: HealthChecks,
    registry: CollectorRegistry,
    requests: RequestTelemetry,
    entropy: Entropy,
) -> Starlette:
    """Only health and metrics: for a worker, or for a separate port."""
    app = RestApp(
        {},
        routes=HealthPages(health, registry, entropy).routes(),
        telemetry=requests,
        entropy=entropy,
    )
    return _with_fallback(app)


def _with_fallback(app: Starlette) -> Starlette:
    # A redirect would be built from the Host header, which the client controls.
    app.router.redirect_slashes = False
    app.router.default = _unknown_path
    app.add_exception_handler(HTTPException, _refused_by_router)
    return app


def _document(base_url: str, policy: EgressPolicy) -> dict[str, Any]:
    # Imported late: the examples take megabytes of memory, and the document is rarely requested.
    from cuepost.interfaces.rest.openapi.document import openapi_document  # noqa: PLC0415  # see above

    return openapi_document(OPERATIONS, base_url, policy)


def _handlers(service: Service, base_url: str) -> dict[str, PathHandler]:
    by_path: defaultdict[str, dict[str, Operation]] = defaultdict(dict)
    for operation in OPERATIONS:
        by_path[operation.path][operation.method] = operation
    return {
        path: PathHandler(operations, service, base_url) for path, operations in by_path.items()
    }


async def _unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await transmit(problem_of(UnknownPath()), scope, send)
    else:
        await send({"type": "websocket.close"})


def _refused_by_router(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    rendered = problem_of(Rejected(error.status_code, code, str(error.detail)))
    standing = {name.decode(): value.decode() for name, value in COMMON_HEADERS}
    headers = {**standing, **(error.headers or {}), "content-type": MEDIA_TYPE}
    return Response(rendered.body, rendered.status, headers)
