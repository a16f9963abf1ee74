"""Signing in and out, and the user's e-mail and password."""

from starlette.responses import Response

from cuepost.application.sign_in import NewSession
from cuepost.application.sign_in_limits import WINDOW
from cuepost.domain.errors import (
    EmailTaken,
    FieldError,
    Invalid,
    NotFound,
    Refused,
    TooManySignIns,
    WrongCredentials,
)
from cuepost.domain.portal import ManagedByHost
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.web.page_handler import failure

HOME = "/settings"
ANOTHER_LINK = "An operator can create another one with `cuepost accounts sign-in-link`."


async def landing_page(context: PageContext) -> Response:
    return context.go(HOME)


async def show_sign_in(context: PageContext) -> Response:
    if context.signed_in is not None:
        return context.go(HOME)
    return context.page("sign_in.html", next=context.query("next"), email="", sentence=None)


async def sign_in(context: PageContext) -> Response:
    email = context.form.text("email")
    try:
        session = await context.service.sign_in.by_password(
            email, context.form.text("password"), context.address
        )
    except (WrongCredentials, TooManySignIns) as refused:
        status = 401 if isinstance(refused, WrongCredentials) else 429
        wanted = context.form.text("next")
        page = context.page("sign_in.html", status, next=wanted, email=email, sentence=str(refused))
        if isinstance(refused, TooManySignIns):
            least = round(WINDOW.total_seconds())
            page.headers["retry-after"] = str(context.service.retry_after(least))
        return page
    return started_session(context, session, context.own_path(context.form.text("next"), HOME))


async def show_link(context: PageContext) -> Response:
    token = context.request.path_params["token"]
    try:
        await context.see(lambda transaction: context.service.sign_in.link(transaction, token))
    except NotFound as refused:
        return failure(context, 404, f"{refused} {ANOTHER_LINK}", "This link has expired")
    return context.page("sign_in_link.html", link=token)


async def sign_in_by_link(context: PageContext) -> Response:
    token = context.request.path_params["token"]
    session = await context.do(
        lambda transaction: context.service.sign_in.by_link(transaction, token, context.address)
    )
    if not context.service.sign_in.allows_passwords:
        return started_session(context, session, HOME)
    known = session.user.password_hash is not None
    wanted = "/settings/account?note=new-password" if known else f"{HOME}?note=signed-in"
    return started_session(context, session, wanted)


async def sign_out(context: PageContext) -> Response:
    signed_in = context.signed_in
    assert signed_in is not None
    await context.do(lambda transaction: context.service.sign_in.sign_out(transaction, signed_in))
    cookies = context.site.cookies
    if signed_in.portal is not None:
        context.portal_link, context.signed_in = signed_in.portal, None
        ended = context.page("portal_ended.html")
        cookies.drop(ended, cookies.portal)
        return ended
    response = context.go("/sign-in")
    cookies.drop(response, cookies.session)
    return response


async def show_account(context: PageContext) -> Response:
    if context.portal is not None:
        raise ManagedByHost
    return _account(context, ())


async def change_account(context: PageContext) -> Response:
    assert context.signed_in is not None
    form = context.form
    try:
        session = await context.service.sign_in.change_credentials(
            context.signed_in, form.text("email"), form.text("password"), form.text("current")
        )
    except Invalid as invalid:
        return _account(context, invalid.errors)
    except WrongCredentials as refused:
        return _account(context, (field_error("current", refused),))
    except EmailTaken as refused:
        return _account(context, (field_error("email", refused),))
    return started_session(context, session, "/settings/account?note=credentials")


async def choose_alerts(context: PageContext) -> Response:
    assert context.signed_in is not None
    user, wanted = context.signed_in.user, context.form.text("alerts") == "on"
    await context.do(
        lambda transaction: context.service.alerts.choose(transaction, user, wanted=wanted)
    )
    return context.go("/settings/account", "alerts-on" if wanted else "alerts-off")


def _account(context: PageContext, errors: tuple[FieldError, ...]) -> Response:
    assert context.signed_in is not None
    email = context.form.text("email") or context.signed_in.user.email or ""
    return context.page(
        "account.html",
        422 if errors else 200,
        section="account",
        errors=errors,
        email=email,
        asks_for_password=context.service.sign_in.asks_for_password(context.signed_in),
    )


def field_error(field: str, refused: Refused) -> FieldError:
    return FieldError(field, refused.code, str(refused))


def started_session(context: PageContext, session: NewSession, path: str) -> Response:
    """With a new cookie, so that a session cookie that an attacker planted is useless."""
    response = context.go(path)
    cookies = context.site.cookies
    life = session.expires_at - context.site.now()
    cookies.put(response, cookies.session, session.token, life)
    cookies.drop(response, cookies.pre_session)
    if cookies.portal in context.request.cookies:
        cookies.drop(response, cookies.portal)
    return response


ROUTES = (
    PageRoute("/", get=landing_page),
    PageRoute("/sign-in", get=show_sign_in, post=sign_in, is_open=True),
    PageRoute("/sign-in/{token}", get=show_link, post=sign_in_by_link, is_open=True),
    PageRoute("/sign-out", post=sign_out, writes=None),
    PageRoute("/settings/account", get=show_account, post=change_account, writes=None),
    PageRoute("/settings/account/alerts", post=choose_alerts, writes=None),
)
