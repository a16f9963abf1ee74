"""The gate before every page: who is it, may the form be believed, and what if it goes wrong."""

import logging
from collections.abc import Mapping
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from cuepost.application.sign_in import Visitor
from cuepost.domain.errors import (
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
from cuepost.doors.web.forms import BadForm, read_form
from cuepost.doors.web.protection import HEADERS, TOKEN_FIELD, carries_token, comes_from_here
from cuepost.doors.web.visit import House, PageRoute, Visit
from cuepost.doors.wire_models.request_notes import OPERATION, REQUEST_ID
from cuepost.ports.passwords import PasswordsBusy
from cuepost.ports.store import Contention, StoreUnavailable

logger = logging.getLogger("cuepost.pages")

STATUS_OF_KIND: Mapping[type[Refused], int] = {
    TooManySignIns: 429,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    Gone: 410,
    Invalid: 422,
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


class Gate:
    """The ASGI-independent half of one page; Starlette calls it with the request."""

    def __init__(self, route: PageRoute, house: House) -> None:
        self._route = route
        self._house = house

    async def __call__(self, request: Request) -> Response:
        request.scope[OPERATION] = self._route.path
        cookies, fresh = self._house.cookies, False
        cookie = request.cookies.get(cookies.session)
        try:
            visitor = await self._visitor(request, cookie)
        except (StoreUnavailable, Contention) as error:
            return self._dressed(self._unavailable(request, error))
        if visitor is None:
            cookie = request.cookies.get(cookies.visit)
            fresh = not cookie
        if not cookie:
            cookie = compose_pass(self._house.service.access.entropy(PASS_BYTES))
        visit = Visit(request, self._house, cookie, visitor)
        response = await self._answered(visit, None if fresh else cookie)
        if fresh:
            cookies.put(response, cookies.visit, cookie, None)
        return self._dressed(response)

    async def _visitor(self, request: Request, cookie: str | None) -> Visitor | None:
        if not cookie:
            return None
        address = request.client.host if request.client else None
        sign_in = self._house.service.sign_in
        try:
            return await self._house.service.perform.read(
                lambda transaction: sign_in.visitor(transaction, cookie, address)
            )
        except NotFound:
            return None

    async def _answered(self, visit: Visit, known_cookie: str | None) -> Response:
        """Whatever happens becomes a page."""
        try:
            return await self._carried_out(visit, known_cookie)
        except Refused as refused:
            kind = next(each for each in type(refused).__mro__ if each in STATUS_OF_KIND)
            return failure(visit, STATUS_OF_KIND[kind], str(refused))
        except BadForm as error:
            return failure(visit, 400, str(error))
        except (StoreUnavailable, Contention) as error:
            return self._unavailable(visit.request, error)
        except PasswordsBusy as busy:
            response = failure(visit, 503, str(PasswordsBusy.__doc__))
            response.headers["retry-after"] = str(busy.RETRY_AFTER_SECONDS)
            return response
        except Exception:
            logger.exception("event=page_broke path=%s", self._route.path)
            return failure(visit, 500, "It was written into the log; please try again.")

    async def _carried_out(self, visit: Visit, known_cookie: str | None) -> Response:
        method = visit.request.method
        handler = self._route.get if method in ("GET", "HEAD") else self._route.post
        if method == "POST" and handler is not None:
            visit.form = await read_form(visit.request)
            believed = comes_from_here(visit.request, self._house.base_url) and carries_token(
                visit.form.text(TOKEN_FIELD), known_cookie
            )
            if not believed:
                sentence = "It is not from this page, or is too old; open it again."
                return failure(visit, 403, sentence, "This form was not believed")
        if handler is None:
            return failure(visit, 405, "This address does not answer to that.")
        if visit.visitor is None and not self._route.is_open:
            return _to_sign_in(visit)
        return await handler(visit)

    def _unavailable(self, request: Request, error: Exception) -> Response:
        logger.warning("event=store_unavailable error=%s", error)
        visit = Visit(request, self._house, "")
        response = failure(visit, 503, "The store does not answer just now; try again soon.")
        response.headers["retry-after"] = "1"
        return response

    def _dressed(self, response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response


def failure(visit: Visit, status: int, sentence: str, title: str | None = None) -> Response:
    if visit.is_fragment:
        return visit.page("fragments/failure.html", status=200, sentence=sentence)
    title = title or TITLES[status]
    reference = visit.request.scope.get(REQUEST_ID, "")
    return visit.page(
        "error.html",
        status,
        title=title,
        sentence=sentence,
        number=status,
        reference=reference if status >= SERVER_ERRORS else "",
    )


def _to_sign_in(visit: Visit) -> Response:
    if visit.is_fragment:
        # A redirect would be followed, and the sign-in drawn into the middle of the page.
        return Response(headers={"hx-redirect": f"{visit.house.root}/sign-in"})
    query = visit.request.scope["query_string"].decode("latin-1")
    wanted = visit.path + (f"?{query}" if query else "")
    path = f"/sign-in?next={quote(wanted)}" if visit.request.method == "GET" else "/sign-in"
    return visit.go(path)
