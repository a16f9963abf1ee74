"""How a host product's user gets in: a page that uses up a portal link when its form is sent."""

from starlette.responses import Response

from cuepost.domain.errors import NotFound
from cuepost.domain.origin import origin_of
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.web.page_handler import failure
from cuepost.interfaces.web.sign_in import HOME

AGAIN = "Open this page again from the product that you came from."


async def show(context: PageContext) -> Response:
    token = context.request.path_params["token"]
    try:
        context.portal_link = await context.see(
            lambda transaction: context.service.portal.look(transaction, token)
        )
    except NotFound as refused:
        return failure(context, 404, f"{refused} {AGAIN}", "This link has ended")
    return context.page("portal.html", link=token, at_once=_is_from_host(context))


async def enter(context: PageContext) -> Response:
    token = context.request.path_params["token"]
    try:
        session = await context.service.perform.change(
            lambda transaction: context.service.portal.enter(transaction, token, context.address)
        )
    except NotFound as refused:
        return failure(context, 404, f"{refused} {AGAIN}", "This link has ended")
    response, cookies = context.go(HOME), context.site.cookies
    cookies.put(response, cookies.portal, session.token, session.expires_at - context.site.now())
    cookies.drop(response, cookies.portal_pre_session)
    return response


def _is_from_host(context: PageContext) -> bool:
    """Whether no click is needed: another site must not sign its users in here unnoticed.

    Only the host product can show this page in a frame, which the content policy ensures.
    """
    headers = context.request.headers
    if headers.get("sec-fetch-dest") in ("iframe", "frame"):
        return bool(context.site.frame_ancestors)
    origin = origin_of(headers.get("referer", ""))
    return origin is not None and origin in context.service.portal.policy.origins


ROUTES = (PageRoute("/portal/{token}", get=show, post=enter, is_open=True, is_portal=True),)
