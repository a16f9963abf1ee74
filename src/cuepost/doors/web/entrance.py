"""Signing in and out, and what people set about themselves."""

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
from cuepost.doors.web.gate import failure
from cuepost.doors.web.visit import PageRoute, Visit

HOME = "/settings/webhooks"
ANOTHER_LINK = "An operator makes another one with `cuepost accounts sign-in-link`."


async def front_door(visit: Visit) -> Response:
    return visit.go(HOME)


async def show_sign_in(visit: Visit) -> Response:
    if visit.visitor is not None:
        return visit.go(HOME)
    return visit.page("sign_in.html", next=visit.query("next"), email="", sentence=None)


async def sign_in(visit: Visit) -> Response:
    email = visit.form.text("email")
    try:
        session = await visit.service.sign_in.by_password(
            email, visit.form.text("password"), visit.address
        )
    except (WrongCredentials, TooManySignIns) as refused:
        status = 401 if isinstance(refused, WrongCredentials) else 429
        wanted = visit.form.text("next")
        page = visit.page("sign_in.html", status, next=wanted, email=email, sentence=str(refused))
        if isinstance(refused, TooManySignIns):
            page.headers["retry-after"] = str(round(WINDOW.total_seconds()))
        return page
    return _let_in(visit, session, _own_path(visit.form.text("next")))


async def show_link(visit: Visit) -> Response:
    token = visit.request.path_params["token"]
    try:
        await visit.see(lambda transaction: visit.service.sign_in.link(transaction, token))
    except NotFound as refused:
        return failure(visit, 404, f"{refused} {ANOTHER_LINK}", "This link works no more")
    return visit.page("sign_in_link.html", link=token)


async def sign_in_by_link(visit: Visit) -> Response:
    token = visit.request.path_params["token"]
    session = await visit.do(
        lambda transaction: visit.service.sign_in.by_link(transaction, token, visit.address)
    )
    known = session.user.can_sign_in_alone
    wanted = "/settings/account?note=new-password" if known else f"{HOME}?note=signed-in"
    return _let_in(visit, session, wanted)


async def sign_out(visit: Visit) -> Response:
    visitor = visit.visitor
    assert visitor is not None
    await visit.do(lambda transaction: visit.service.sign_in.sign_out(transaction, visitor))
    response = visit.go("/sign-in")
    visit.house.cookies.drop(response, visit.house.cookies.session)
    return response


async def show_account(visit: Visit) -> Response:
    return _account(visit, ())


async def change_account(visit: Visit) -> Response:
    assert visit.visitor is not None
    form = visit.form
    try:
        session = await visit.service.sign_in.change_credentials(
            visit.visitor, form.text("email"), form.text("password"), form.text("current")
        )
    except Invalid as invalid:
        return _account(visit, invalid.errors)
    except WrongCredentials as refused:
        return _account(visit, (_fault("current", refused),))
    except EmailTaken as refused:
        return _account(visit, (_fault("email", refused),))
    return _let_in(visit, session, "/settings/account?note=credentials")


def _account(visit: Visit, errors: tuple[FieldError, ...]) -> Response:
    assert visit.visitor is not None
    email = visit.form.text("email") or visit.visitor.user.email or ""
    return visit.page(
        "account.html",
        422 if errors else 200,
        section="account",
        errors=errors,
        email=email,
        asks_for_password=visit.service.sign_in.asks_for_password(visit.visitor),
    )


def _fault(field: str, refused: Refused) -> FieldError:
    return FieldError(field, refused.code, str(refused))


def _let_in(visit: Visit, session: NewSession, path: str) -> Response:
    """With a new cookie: whatever cookie somebody may have planted before is worth nothing."""
    response = visit.go(path)
    cookies = visit.house.cookies
    life = session.expires_at - visit.house.now()
    cookies.put(response, cookies.session, session.token, life)
    cookies.drop(response, cookies.visit)
    return response


def _own_path(wanted: str) -> str:
    """Where somebody wanted to go, as long as it is here."""
    inside = wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
    return wanted if inside and wanted.isprintable() else HOME


ROUTES = (
    PageRoute("/", get=front_door),
    PageRoute("/settings", get=front_door),
    PageRoute("/sign-in", get=show_sign_in, post=sign_in, is_open=True),
    PageRoute("/sign-in/{token}", get=show_link, post=sign_in_by_link, is_open=True),
    PageRoute("/sign-out", post=sign_out),
    PageRoute("/settings/account", get=show_account, post=change_account),
)
