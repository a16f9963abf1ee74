"""One request to the pages: the user, the form, and the ways to answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from cuepost.application.operator_sign_in import OperatorSession
from cuepost.application.provider_sign_in import SignInWithProvider
from cuepost.application.service import Service
from cuepost.application.sign_in import SignedIn
from cuepost.domain.access import Caller, Scope
from cuepost.domain.errors import NotFound
from cuepost.domain.person import compose_opaque_token
from cuepost.domain.portal import PortalLink
from cuepost.interfaces.web.forms import Form
from cuepost.interfaces.web.notes import NOTES
from cuepost.interfaces.web.protection import Cookies, form_token
from cuepost.interfaces.web.rendering import render
from cuepost.ports.store import Transaction

T = TypeVar("T")
ONCE_BYTES = 24
THEMES = ("light", "dark")


@dataclass(frozen=True, slots=True)
class SiteContext:
    """What all pages share; `dispatcher` says how the delivery of this process is doing."""

    service: Service
    base_url: str
    root: str
    cookies: Cookies
    is_stopping: Callable[[], bool]
    provider: SignInWithProvider | None = None
    dispatcher: Callable[[], str] | None = None
    frame_ancestors: tuple[str, ...] = ()

    @property
    def provider_name(self) -> str | None:
        return None if self.provider is None else self.provider.name

    def now(self) -> datetime:
        return self.service.sign_in.clock.now()


@dataclass(slots=True)
class PageContext:
    """`area` is where the pages are that its session is for: the operator's, or none."""

    request: Request
    site: SiteContext
    cookie: str
    signed_in: SignedIn | None = None
    form: Form = field(default_factory=Form)
    lag_seconds: int = 0
    failing_endpoints: int = 0
    hides_address: bool = False
    operator: OperatorSession | None = None
    area: str = ""
    portal_link: PortalLink | None = None
    has_left_portal: bool = False

    @property
    def service(self) -> Service:
        return self.site.service

    @property
    def caller(self) -> Caller:
        known = self.operator or self.signed_in
        assert known is not None
        return known.caller

    @property
    def address(self) -> str | None:
        return self.request.client.host if self.request.client else None

    @property
    def path(self) -> str:
        """Without the root path. `request.url` is not used: it may hold any bytes."""
        path: str = self.request.scope["path"]
        return path.removeprefix(self.site.root)

    @property
    def is_fragment(self) -> bool:
        return self.request.headers.get("hx-request") == "true"

    def id(self, name: str) -> UUID:
        """A value that is not an id is not found."""
        try:
            return UUID(self.request.path_params[name])
        except ValueError:
            raise NotFound("There is no such page.") from None

    def query(self, name: str) -> str:
        return self.request.query_params.get(name, "").strip()

    def once(self) -> str:
        """The idempotency key of a form."""
        return compose_opaque_token(self.service.access.entropy(ONCE_BYTES))

    @property
    def portal(self) -> PortalLink | None:
        """The link of a host product that opened this session, or is about to."""
        return self.portal_link or (self.signed_in.portal if self.signed_in else None)

    @property
    def theme(self) -> str:
        """`light`, `dark`, or empty for the theme of the system."""
        if self.portal is not None:
            scheme = self.portal.theme.scheme.value
            return scheme if scheme in THEMES else ""
        chosen = self.request.cookies.get(self.site.cookies.theme, "")
        return chosen if chosen in THEMES else ""

    def own_path(self, wanted: str, otherwise: str) -> str:
        """The requested page, if it is one of this site."""
        inside = wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
        return wanted if inside and wanted.isprintable() else otherwise

    @property
    def here(self) -> str:
        """The path and the query of this page, without what no page can contain."""
        query = self.request.scope["query_string"].decode("latin-1")
        address = self.path + (f"?{query}" if query else "")
        return address.encode(errors="replace").decode()

    async def see(self, look: Callable[[Transaction], Awaitable[T]]) -> T:
        return await self.service.perform.read(look)

    async def browse(self, look: Callable[[Transaction], Awaitable[T]]) -> T:
        """Lists of history and figures may lag, except on a page that confirms a change."""
        if self.query("note"):
            return await self.see(look)
        found = await self.service.perform.browse(look)
        self.lag_seconds = max(self.lag_seconds, found.lag_seconds)
        return found.value

    async def do(self, act: Callable[[Transaction], Awaitable[T]]) -> T:
        known = self.operator or self.signed_in
        caller = None if known is None else known.caller
        return await self.service.perform.change_by(caller, act)

    @property
    def may_change(self) -> bool:
        """Pages show no form to a member whose role may only read; see also `PageRoute.writes`."""
        return self.signed_in is not None and self.signed_in.caller.may(Scope.WEBHOOKS_MANAGE)

    def html(self, template: str, **context: Any) -> str:
        is_shown = self.request.method == "GET" and not self.hides_address
        standing = {
            "root": self.site.root,
            "base_url": self.site.base_url,
            "path": self.path,
            "signed_in": self.signed_in,
            "operator": self.operator,
            "area": self.area,
            "may_change": self.may_change,
            "token": form_token(self.cookie),
            "note": NOTES.get(self.query("note")),
            "lag": timedelta(seconds=self.lag_seconds),
            "now": self.site.now(),
            "section": "",
            "failing_endpoints": self.failing_endpoints,
            "theme": self.theme,
            "provider": self.site.provider_name,
            "passwords": self.service.sign_in.allows_passwords,
            "here_again": self.here if is_shown else None,
            "portal": self.portal,
        }
        return render(template, standing | context)

    def page(self, template: str, status: int = 200, **context: Any) -> Response:
        return HTMLResponse(self.html(template, **context), status)

    def go(self, path: str, note: str | None = None) -> Response:
        sign = "&" if "?" in path else "?"
        return RedirectResponse(
            self.site.root + path + (f"{sign}note={note}" if note else ""), status_code=303
        )


Handler = Callable[[PageContext], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """`is_open`: available without a session.

    `has_deadline`: the request is cancelled after `CUEPOST_REQUEST_TIMEOUT`.
    `reads` and `writes`: the scope that the role of a member must have, for GET and for POST. A new
    form is refused to viewers unless its route says otherwise.
    `is_portal`: its form is sent before there is a session, also in a frame of another site.
    """

    path: str
    get: Handler | None = None
    post: Handler | None = None
    is_open: bool = False
    has_deadline: bool = True
    reads: Scope | None = None
    writes: Scope | None = Scope.WEBHOOKS_MANAGE
    is_portal: bool = False
