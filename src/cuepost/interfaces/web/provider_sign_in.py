"""Signing in with the OpenID provider of the operator, and connecting a member with it."""

import logging
from collections.abc import Mapping

from starlette.responses import RedirectResponse, Response

from cuepost.application.provider_sign_in import (
    PENDING_LIFE,
    FailureReason,
    FinishedSignIn,
    ProviderSignInFailed,
    SignInWithProvider,
)
from cuepost.domain.errors import NotFound, Refused
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.web.page_handler import failure, failure_of
from cuepost.interfaces.web.sign_in import HOME, started_session

logger = logging.getLogger("cuepost.pages")

START = "/sign-in/openid"
CALLBACK = "/sign-in/openid/callback"
ACCOUNT = "/settings/account"
# The status, title and sentence of each failure; the log has the reason.
PAGES: Mapping[FailureReason, tuple[int, str, str]] = {
    FailureReason.NOT_STARTED: (
        400,
        "This sign-in has ended",
        (
            "It was started in another browser or tab, was completed already, or took longer than "
            "ten minutes. Start it again."
        ),
    ),
    FailureReason.CANCELLED: (403, "Sign-in declined", "You or {name} declined the sign-in."),
    FailureReason.PROVIDER_ERROR: (
        502,
        "{name} reports an error",
        (
            "You are not signed in. Try again; if that does not help, tell the operator of this "
            "service."
        ),
    ),
    FailureReason.UNAVAILABLE: (
        502,
        "{name} cannot be reached",
        (
            "You are not signed in. Try again soon, or choose another way; an operator can "
            "create a one-time link with `cuepost accounts sign-in-link`."
        ),
    ),
    FailureReason.TOKEN_REFUSED: (
        403,
        "Sign-in not verified",
        (
            "The answer of {name} could not be verified, so you are not signed in. Try again; if "
            "that does not help, tell the operator of this service."
        ),
    ),
}


async def start(context: PageContext) -> Response:
    if context.signed_in is not None:
        return context.go(HOME)
    provider = _provider(context)
    try:
        started = await provider.start(context.own_path(context.query("next"), ""))
    except ProviderSignInFailed as failed:
        return _failed(context, provider, failed)
    response = RedirectResponse(started.url, status_code=303)
    context.site.cookies.put(response, context.site.cookies.pending, started.sealed, PENDING_LIFE)
    return response


async def connect(context: PageContext) -> Response:
    """A page with a link, because the policy of the pages lets no form lead to another site."""
    assert context.signed_in is not None
    provider = _provider(context)
    try:
        started = await provider.connect(context.signed_in, ACCOUNT)
    except ProviderSignInFailed as failed:
        return _failed(context, provider, failed)
    response = context.page(
        "connect.html", section="account", provider=provider.name, url=started.url
    )
    context.site.cookies.put(response, context.site.cookies.pending, started.sealed, PENDING_LIFE)
    return response


async def finish(context: PageContext) -> Response:
    provider, cookies = _provider(context), context.site.cookies
    context.hides_address = True
    parameters = dict(context.request.query_params)
    sealed = context.request.cookies.get(cookies.pending, "")
    try:
        finished = await provider.finish(parameters, sealed, context.address, context.signed_in)
    except ProviderSignInFailed as failed:
        response = _failed(context, provider, failed)
        if failed.reason is FailureReason.NOT_STARTED:
            return response
    except Refused as refused:
        logger.warning("event=openid_sign_in_failed reason=%s error=%s", refused.code, refused)
        response = failure_of(context, refused, "You cannot sign in")
    else:
        response = started_session(context, finished.session, _path(context, finished))
    cookies.drop(response, cookies.pending)
    return response


def _path(context: PageContext, finished: FinishedSignIn) -> str:
    if finished.has_connected:
        return f"{ACCOUNT}?note=connected"
    return context.own_path(finished.path, HOME)


def _provider(context: PageContext) -> SignInWithProvider:
    if context.site.provider is None:
        raise NotFound("This service has no OpenID provider.")
    return context.site.provider


def _failed(
    context: PageContext, provider: SignInWithProvider, failed: ProviderSignInFailed
) -> Response:
    logger.warning("event=openid_sign_in_failed reason=%s error=%s", failed.reason, failed)
    status, title, sentence = PAGES[failed.reason]
    return failure(
        context, status, sentence.format(name=provider.name), title.format(name=provider.name)
    )


ROUTES = (
    PageRoute(START, get=start, is_open=True),
    PageRoute(CALLBACK, get=finish, is_open=True),
    PageRoute(f"{ACCOUNT}/connect", post=connect, writes=None),
)
