"""The handler before every page: who is it, may the form be believed, and what if it goes wrong."""

import logging
from collections.abc import Mapping
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from cuepost.application.deadline import Deadline, request_deadline
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
from cuepost.domain.person import PASS_BYTES, compose_pass
from cuepost.interfaces.web.forms import BadForm, read_form
from cuepost.interfaces.web.page_context import PageContext, PageRoute, SiteContext
from cuepost.interfaces.web.protection import HEADERS, TOKEN_FIELD, carries_token, comes_from_here
from cuepost.interfaces.wire_models.request_notes import OPERATION, REQUEST_ID
from cuepost.log_lines import log_store_error
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
    403: "This is not open to you",
    404: "There is nothing here",
    405: "Not like this",
    409: "That cannot be done now",
    410: "It is gone",
    422: "Something does not fit",
    429: "Too many attempts",
    500: "Something broke",
    503: "Back in a moment",
}


SERVER_ERRORS = 500
_UNCHANGED = "The store does not answer just now, and nothing was changed; try again soon."
_MAYBE_CHANGED = (
    "The store did not answer while it saved, so the change may have been made; look before you "
    "try again."
)


class PageHandler:
    """The ASGI-independent half of one page; Starlette calls it with the request."""

    def __init__(self, route: PageRoute, site: SiteContext) -> None:
        self._route = route
        self._runtime = site

    async def __call__(self, request: Request) -> Response:
        request.scope[OPERATION] = self._route.path
        seconds = self._runtime.service.request_timeout if self._route.has_deadline else None
        try:
            async with request_deadline(seconds) as deadline:
                response = await self._let_in(request, deadline)
        except (StoreUnavailable, Contention) as error:
            response = self._unavailable(request, error)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    async def _let_in(self, request: Request, deadline: Deadline) -> Response:
        cookies, fresh = self._runtime.cookies, False
        cookie = request.cookies.get(cookies.session)
        signed_in = await self._signed_in(request, cookie)
        if signed_in is None:
            cookie = request.cookies.get(cookies.context)
            fresh = not cookie
        if not cookie:
            cookie = compose_pass(self._runtime.service.access.entropy(PASS_BYTES))
        context = PageContext(request, self._runtime, cookie, signed_in)
        response = await self._answered(context, None if fresh else cookie, deadline)
        if fresh:
            cookies.put(response, cookies.context, cookie, None)
        return response

    async def _signed_in(self, request: Request, cookie: str | None) -> SignedIn | None:
        if not cookie:
            return None
        address = request.client.host if request.client else None
        sign_in = self._runtime.service.sign_in
        try:
            return await self._runtime.service.perform.read(
                lambda transaction: sign_in.signed_in(transaction, cookie, address)
            )
        except NotFound:
            return None

    async def _answered(
        self, context: PageContext, known_cookie: str | None, deadline: Deadline
    ) -> Response:
        """Whatever happens becomes a page."""
        try:
            return await self._carried_out(context, known_cookie, deadline)
        except Refused as refused:
            kind = next(each for each in type(refused).__mro__ if each in STATUS_OF_KIND)
            return failure(context, STATUS_OF_KIND[kind], str(refused))
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
            return failure(context, 500, "It was written into the log; please try again.")

    async def _carried_out(
        self, context: PageContext, known_cookie: str | None, deadline: Deadline
    ) -> Response:
        method = context.request.method
        handler = self._route.get if method in ("GET", "HEAD") else self._route.post
        if method == "POST" and handler is not None:
            with deadline.paused():
                context.form = await read_form(context.request)
            believed = comes_from_here(context.request, self._runtime.base_url) and carries_token(
                context.form.text(TOKEN_FIELD), known_cookie
            )
            if not believed:
                sentence = "It is not from this page, or is too old; open it again."
                return failure(context, 403, sentence, "This form was not believed")
        if handler is None:
            return failure(context, 405, "This address does not answer to that.")
        if context.signed_in is None and not self._route.is_open:
            return _to_sign_in(context)
        return await handler(context)

    def _unavailable(self, request: Request, error: StoreError) -> Response:
        log_store_error(logger, "store_unavailable", error, self._route.path)
        context = PageContext(request, self._runtime, "")
        is_known = not isinstance(error, CommitUnknown)
        response = failure(context, 503, _UNCHANGED if is_known else _MAYBE_CHANGED)
        response.headers["retry-after"] = str(context.service.retry_after())
        return response


def failure(context: PageContext, status: int, sentence: str, title: str | None = None) -> Response:
    if context.is_fragment:
        return context.page("fragments/failure.html", status=200, sentence=sentence)
    title = title or TITLES[status]
    reference = context.request.scope.get(REQUEST_ID, "")
    return context.page(
        "error.html",
        status,
        title=title,
        sentence=sentence,
        number=status,
        reference=reference if status >= SERVER_ERRORS else "",
    )


def _to_sign_in(context: PageContext) -> Response:
    if context.is_fragment:
        # A redirect would be followed, and the sign-in drawn into the middle of the page.
        return Response(headers={"hx-redirect": f"{context.site.root}/sign-in"})
    query = context.request.scope["query_string"].decode("latin-1")
    wanted = context.path + (f"?{query}" if query else "")
    path = f"/sign-in?next={quote(wanted)}" if context.request.method == "GET" else "/sign-in"
    return context.go(path)
