"""A small stylesheet for each accent colour; the content policy allows no inline styles."""

from starlette.requests import Request
from starlette.responses import Response

from cuepost.domain.colour import is_colour, readable_on, text_on
from cuepost.interfaces.web.static_files import IMMUTABLE

# The grounds of `pages.css` that links stand on.
LIGHT_GROUNDS = ("#f5f6fa", "#ffffff")
DARK_GROUNDS = ("#1d222d", "#11141b")
_SHEET = """\
:root:root:root {
  --pico-primary: light-dark(LIGHT, DARK);
  --pico-primary-hover: light-dark(LIGHT, DARK);
  --pico-primary-underline: light-dark(LIGHT, DARK);
  --pico-primary-focus: light-dark(LIGHT, DARK);
  --pico-primary-background: ACCENT;
  --pico-primary-border: ACCENT;
  --pico-primary-hover-background: ACCENT;
  --pico-primary-hover-border: ACCENT;
  --pico-primary-inverse: TEXT;
}
"""


def address_of_accent(accent: str) -> str:
    return f"/static/accent/{accent.removeprefix('#').lower()}.css"


async def serve_accent(request: Request) -> Response:
    accent = f"#{request.path_params['accent']}"
    if not is_colour(accent):
        return Response("Not found.", 404, media_type="text/plain")
    return Response(
        stylesheet(accent),
        headers={
            "cache-control": IMMUTABLE,
            "content-type": "text/css; charset=utf-8",
            "x-content-type-options": "nosniff",
        },
    )


def stylesheet(accent: str) -> str:
    values = {
        "ACCENT": accent,
        "TEXT": text_on(accent),
        "LIGHT": readable_on(LIGHT_GROUNDS, accent),
        "DARK": readable_on(DARK_GROUNDS, accent),
    }
    sheet = _SHEET
    for name, value in values.items():
        sheet = sheet.replace(name, value)
    return sheet
