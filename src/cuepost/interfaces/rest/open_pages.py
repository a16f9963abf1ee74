"""Pages that need no key: health, metrics, the OpenAPI document and its HTML page."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cuepost.application.rekey import KeysInUse
from cuepost.application.retry_after import retry_after
from cuepost.interfaces.rest.answers import COMMON_HEADERS
from cuepost.interfaces.rest.docs_page import render_page
from cuepost.log_lines import log_store_error
from cuepost.ports.store import StoreUnavailable
from cuepost.ports.system import Entropy

logger = logging.getLogger("cuepost.rest")

# With the check interval of 0.5 s this detects a hanging database within two seconds.
CHECK_SECONDS = 1.4
_PAGE_POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'"


@dataclass(frozen=True, slots=True)
class HealthChecks:
    """`check_store` raises if the store cannot be reached or has a different schema.

    `dispatcher` returns "ok" or what is wrong; None in a process without a dispatcher.
    `master_keys` counts the signing secrets under each master key.
    `refresh_metrics` reads the metrics that need the store, before each scrape.
    """

    check_store: Callable[[], Awaitable[None]]
    dispatcher: Callable[[], str] | None = None
    master_keys: Callable[[], Awaitable[KeysInUse]] | None = None
    refresh_metrics: Callable[[], Awaitable[None]] | None = None


class HealthPages:
    """Health checks and metrics, served by every process."""

    def __init__(self, health: HealthChecks, registry: CollectorRegistry, entropy: Entropy) -> None:
        self._health = health
        self._entropy = entropy
        self._registry = registry

    def routes(self, *, with_metrics: bool = True) -> list[Route]:
        health = [Route("/healthz", self.alive), Route("/readyz", self.ready)]
        return [*health, Route("/metrics", self.metrics)] if with_metrics else health

    async def alive(self, request: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        store_is_well = await self._store_is_well()
        checks = {"store": "ok" if store_is_well else "unavailable"}
        if self._health.dispatcher is not None:
            checks["dispatcher"] = self._health.dispatcher()
        secrets = await self._secrets() if store_is_well else None
        if secrets is not None and secrets.lost:
            checks["secrets"] = f"{secrets.lost} are encrypted with a missing master key"
        well = all(state == "ok" for state in checks.values())
        status: dict[str, Any] = {"status": "ready" if well else "not_ready", "checks": checks}
        if secrets is not None and secrets.counts.keys() - {secrets.newest}:
            status["secretsUnderKey"] = secrets.counts
        if well:
            return _json(status)
        response = _json(status, 503)
        response.headers["retry-after"] = str(retry_after(self._entropy))
        return response

    async def _secrets(self) -> KeysInUse | None:
        """None if the count is not available; it never makes the process not ready."""
        if self._health.master_keys is None:
            return None
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                return await self._health.master_keys()
        except (StoreUnavailable, TimeoutError):
            return None

    async def metrics(self, request: Request) -> Response:
        if self._health.refresh_metrics is not None:
            await self._health.refresh_metrics()
        return _plain(generate_latest(self._registry), CONTENT_TYPE_LATEST)

    async def _store_is_well(self) -> bool:
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._health.check_store()
        except TimeoutError:
            late = StoreUnavailable(f"the store did not respond within {CHECK_SECONDS} s")
            log_store_error(logger, "not_ready", late, "readyz")
            return False
        except StoreUnavailable as error:
            log_store_error(logger, "not_ready", error, "readyz")
            return False
        except Exception:
            logger.exception("event=not_ready")
            return False
        return True


class ReferencePages:
    def __init__(self, document: Callable[[], dict[str, Any]]) -> None:
        self._make_document = document

    def routes(self) -> list[Route]:
        return [
            Route("/openapi.json", self.openapi),
            Route("/docs", self.docs),
            Route("/docs.css", self.style),
        ]

    @cached_property
    def document(self) -> dict[str, Any]:
        return self._make_document()

    @cached_property
    def _document_text(self) -> bytes:
        return msgspec.json.encode(self.document)

    @cached_property
    def _page(self) -> str:
        return render_page(self.document)

    async def openapi(self, request: Request) -> Response:
        return _plain(self._document_text, "application/json")

    async def docs(self, request: Request) -> Response:
        return _plain(self._page.encode(), "text/html; charset=utf-8", _PAGE_POLICY)

    async def style(self, request: Request) -> Response:
        style = files(__package__).joinpath("pages/docs.css").read_bytes()
        return _plain(style, "text/css; charset=utf-8")


def _json(content: object, status: int = 200) -> Response:
    return _plain(msgspec.json.encode(content), "application/json", status=status)


def _plain(
    content: bytes, media_type: str, policy: str | None = None, status: int = 200
) -> Response:
    headers = {name.decode(): value.decode() for name, value in COMMON_HEADERS}
    if policy is not None:
        headers["content-security-policy"] = policy
    return Response(content, status, {**headers, "content-type": media_type})
