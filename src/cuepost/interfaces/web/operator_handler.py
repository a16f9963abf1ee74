"""The handler of the operator's pages, and how an operator signs in to them and out."""

from starlette.requests import Request
from starlette.responses import Response

from cuepost.application.operator_sign_in import OperatorSession, OperatorSignIn
from cuepost.application.sign_in_limits import WINDOW
from cuepost.domain.errors import NotFound, TooManySignIns, WrongCredentials
from cuepost.interfaces.web import themes
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.web.page_handler import PageHandler
from cuepost.interfaces.web.protection import content_policy

HOME = "/operator"
LONGEST_KEY = 200


class OperatorPageHandler(PageHandler):
    """With a session of an operator key. The session of a member opens none of these pages."""

    area = HOME

    async def opened(self, request: Request) -> PageContext:
        cookie = request.cookies.get(self._site.cookies.operator, "")
        context = PageContext(request, self._site, cookie, area=HOME)
        context.operator = await self._operator(context)
        return context

    def has_session(self, context: PageContext) -> bool:
        return context.operator is not None

    def policy(self, context: PageContext | None = None) -> str:
        """These pages are shown in no frame."""
        return content_policy()

    async def _operator(self, context: PageContext) -> OperatorSession | None:
        if not context.cookie:
            return None
        signed_in = OperatorSignIn(context.service.sign_in).signed_in
        try:
            return await context.see(
                lambda transaction: signed_in(transaction, context.cookie, context.address)
            )
        except NotFound:
            return None


async def show_sign_in(context: PageContext) -> Response:
    if context.operator is not None:
        return context.go(HOME)
    return context.page("operator/sign_in.html", next=context.query("next"), sentence=None)


async def sign_in(context: PageContext) -> Response:
    wanted, key = context.form.text("next"), context.form.text("key").strip()[:LONGEST_KEY]
    try:
        made = await OperatorSignIn(context.service.sign_in).by_key(key, context.address)
    except (WrongCredentials, TooManySignIns) as refused:
        status = 401 if isinstance(refused, WrongCredentials) else 429
        page = context.page("operator/sign_in.html", status, next=wanted, sentence=str(refused))
        if isinstance(refused, TooManySignIns):
            least = round(WINDOW.total_seconds())
            page.headers["retry-after"] = str(context.service.retry_after(least))
        return page
    inside = wanted == HOME or wanted.startswith((f"{HOME}/", f"{HOME}?"))
    response = context.go(context.own_path(wanted, HOME) if inside else HOME)
    site = context.site
    life = made.expires_at - site.now()
    cookies, path = site.cookies, site.root + HOME
    cookies.put(response, cookies.operator, made.token, life, path=path, strict=True)
    cookies.drop(response, cookies.pre_session)
    return response


async def sign_out(context: PageContext) -> Response:
    signed_in = context.operator
    assert signed_in is not None
    await context.do(
        lambda transaction: OperatorSignIn(context.service.sign_in).sign_out(transaction, signed_in)
    )
    response = context.go(f"{HOME}/sign-in")
    context.site.cookies.drop(response, context.site.cookies.operator, context.site.root + HOME)
    return response


ROUTES = (
    PageRoute(f"{HOME}/sign-in", get=show_sign_in, post=sign_in, is_open=True),
    PageRoute(f"{HOME}/sign-out", post=sign_out, writes=None),
    PageRoute(f"{HOME}/theme", post=themes.choose, is_open=True),
)
