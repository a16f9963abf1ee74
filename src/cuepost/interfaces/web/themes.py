"""The theme switch: a form that works without JavaScript; a cookie remembers the choice."""

from datetime import timedelta

from starlette.responses import Response

from cuepost.domain.errors import NotFound
from cuepost.interfaces.web.page_context import THEMES, PageContext, PageRoute

SYSTEM = "system"
CHOICES = (SYSTEM, *THEMES)
LIFETIME = timedelta(days=365)


async def choose(context: PageContext) -> Response:
    wanted = context.form.text("theme")
    if wanted not in CHOICES:
        raise NotFound
    cookies = context.site.cookies
    response = (
        Response(status_code=204) if context.is_fragment else context.go(_return_path(context))
    )
    if wanted == SYSTEM:
        cookies.drop(response, cookies.theme)
    else:
        cookies.put(response, cookies.theme, wanted, LIFETIME)
    return response


def _return_path(context: PageContext) -> str:
    return context.own_path(context.form.text("next"), "/settings")


ROUTES = (PageRoute("/theme", post=choose, is_open=True),)
