"""The handler of every page: session, form token, deadline, errors."""

import logging
from collections.abc import Mapping
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from cuepost.application.admission import RequestDeadline
from cuepost.application.sign_in import SignedIn
from cuepost.domain.errors import (
    AccountMoving,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Refused,
    TooManySignIns,
    Unauthenticated,
)
from cuepost.domain.origin import origin_of
from cuepost.domain.person import OPAQUE_TOKEN_BYTES, compose_opaque_token
from cuepost.interfaces.web.forms import BadForm, read_form
from cuepost.interfaces.web.page_context import PageContext, PageRoute, SiteContext
from cuepost.interfaces.web.protection import (
    HEADERS,
    TOKEN_FIELD,
    carries_token,
    comes_from_here,
    content_policy,
)
from cuepost.interfaces.wire_models.request_notes import OPERATION
from cuepost.log_lines import REQUEST_ID, log_store_error
from cuepost.ports.passwords import PasswordsBusy
from cuepost.ports.store import CommitUnknown, Contention, StoreError, StoreUnavailable

logger = logging.getLogger("cuepost.pages")

STATUS_OF_KIND: Mapping[type[Refused], int] = {
    TooManySignIns: 429,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    Gone: 410,
    Invalid: 422,
    AccountMoving: 503,
}
TITLES: Mapping[int, str] = {
    400: "This form could not be read",
    403: "Access denied",
    404: "Not found",
    405: "Method not allowed",
    409: "Not possible in the current state",
    410: "No longer available",
    422: "Invalid input",
    429: "Too many attempts",
    500: "Internal error",
    503: "Temporarily unavailable",
}
SERVER_ERRORS = 500
EXPIRED_FORM = "This form has expired; send it again"
_UNCHANGED = "The database is unavailable, and nothing was changed; try again soon."
_MAYBE_CHANGED = (
    "The database did not confirm the change, which may have been made; check before you try again."
)


class PageHandler:
    """Starlette calls it with each request of its page, for members of accounts."""

    area = ""

    def __init__(self, route: PageRoute, site: SiteContext) -> None:
        self._route = route
        self._site = site

    async def __call__(self, request: Request) -> Response:
        request.scope[OPERATION] = self._route.path
        seconds = self._site.service.request_timeout if self._route.has_deadline else None
        try:
            with RequestDeadline(seconds) as deadline:
                response = await self._with_session(request, deadline)
        except (StoreUnavailable, Contention) as error:
            response = self._unavailable(request, error)
        for name, value in HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("content-security-policy", self.policy())
        return response

    async def _with_session(self, request: Request, deadline: RequestDeadline) -> Response:
        cookies, fresh = self._site.cookies, False
        context = await self.opened(request)
        before = cookies.portal_pre_session if self._route.is_portal else cookies.pre_session
        if not self.has_session(context):
            context.cookie = request.cookies.get(before, "")
            fresh = not context.cookie
        if fresh:
            entropy = self._site.service.access.entropy(OPAQUE_TOKEN_BYTES)
            context.cookie = compose_opaque_token(entropy)
        cookie = context.cookie
        response = await self._response_or_error(context, None if fresh else cookie, deadline)
        if fresh:
            cookies.put(response, before, cookie, None)
        response.headers["content-security-policy"] = self.policy(context)
        return response

    def policy(self, context: PageContext | None = None) -> str:
        logo = context.portal.theme.logo_url if context and context.portal else None
        return content_policy(self._site.frame_ancestors, origin_of(logo) if logo else None)

    async def opened(self, request: Request) -> PageContext:
        """With the session of the cookie, if it has one."""
        cookies = self._site.cookies
        portal = request.cookies.get(cookies.portal, "")
        cookie = portal or request.cookies.get(cookies.session, "")
        context = PageContext(request, self._site, cookie, await self._signed_in(request, cookie))
        context.has_left_portal = bool(portal) and context.signed_in is None
        context.failing_endpoints = await self._failing_endpoints(context)
        return context

    def has_session(self, context: PageContext) -> bool:
        return context.signed_in is not None

    async def _signed_in(self, request: Request, cookie: str) -> SignedIn | None:
        if not cookie:
            return None
        address = request.client.host if request.client else None
        sign_in = self._site.service.sign_in
        try:
            return await self._site.service.perform.read(
                lambda transaction: sign_in.signed_in(transaction, cookie, address)
            )
        except NotFound:
            return None

    async def _failing_endpoints(self, context: PageContext) -> int:
        """For the banner of whole pages."""
        is_page = context.request.method == "GET" and not context.is_fragment
        if context.signed_in is None or not is_page or not context.caller.webhooks_enabled:
            return 0
        alerts = await context.see(
            lambda transaction: context.service.alerts.open(transaction, context.caller)
        )
        return len({each.webhook_id for each in alerts})

    async def _response_or_error(
        self, context: PageContext, known_cookie: str | None, deadline: RequestDeadline
    ) -> Response:
        """Every error becomes a page."""
        try:
            return await self._dispatch(context, known_cookie, deadline)
        except Refused as refused:
            return failure_of(context, refused)
        except BadForm as error:
            return failure(context, 400, str(error))
        except (StoreUnavailable, Contention):
            raise
        except PasswordsBusy:
            response = failure(context, 503, str(PasswordsBusy.__doc__))
            response.headers["retry-after"] = str(context.service.retry_after())
            return response
        except Exception:
            logger.exception("event=page_broke path=%s", self._route.path)
            return failure(context, 500, "The error has been logged; please try again.")

    async def _dispatch(
        self, context: PageContext, known_cookie: str | None, deadline: RequestDeadline
    ) -> Response:
        method = context.request.method
        handler = self._route.get if method in ("GET", "HEAD") else self._route.post
        if method == "POST" and handler is not None:
            context.form = await deadline.excluding(read_form(context.request))
            is_trusted = comes_from_here(context.request, self._site.base_url) and carries_token(
                context.form.text(TOKEN_FIELD), known_cookie
            )
            if not is_trusted:
                return failure(
                    context, 403, "Open the page again and repeat the change.", EXPIRED_FORM
                )
        if handler is None:
            return failure(context, 405, "This address does not support the method.")
        if not self.has_session(context) and not self._route.is_open:
            return _to_sign_in(context)
        needed = self._route.writes if method == "POST" else self._route.reads
        if needed is not None and not self._route.is_open:
            context.caller.require(needed)
        return await handler(context)

    def _unavailable(self, request: Request, error: StoreError) -> Response:
        log_store_error(logger, "store_unavailable", error, self._route.path)
        context = PageContext(request, self._site, "", area=self.area)
        is_known = not isinstance(error, CommitUnknown)
        response = failure(context, 503, _UNCHANGED if is_known else _MAYBE_CHANGED)
        response.headers["retry-after"] = str(context.service.retry_after())
        return response


def failure(context: PageContext, status: int, sentence: str, title: str | None = None) -> Response:
    if context.is_fragment:
        return context.page("fragments/failure.html", status=200, sentence=sentence)
    title = title or TITLES[status]
    return context.page(
        "error.html",
        status,
        title=title,
        sentence=sentence,
        number=status,
        reference=REQUEST_ID.get() if status >= SERVER_ERRORS else "",
    )


def failure_of(context: PageContext, refused: Refused, title: str | None = None) -> Response:
    kind = next(each for each in type(refused).__mro__ if each in STATUS_OF_KIND)
    return failure(context, STATUS_OF_KIND[kind], str(refused), title)


def _to_sign_in(context: PageContext) -> Response:
    if context.has_left_portal and not context.is_fragment:
        cookies, ended = context.site.cookies, context.page("portal_ended.html", 401)
        cookies.drop(ended, cookies.portal)
        return ended
    if context.is_fragment:
        here = "/settings" if context.has_left_portal else f"{context.area}/sign-in"
        # htmx would follow a redirect and insert the sign-in page as a fragment.
        return Response(headers={"hx-redirect": context.site.root + here})
    wanted = f"?next={quote(context.here)}" if context.request.method == "GET" else ""
    return context.go(f"{context.area}/sign-in{wanted}")
