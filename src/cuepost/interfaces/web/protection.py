"""Cookies, form tokens and the content security policy."""

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
TOKEN_FIELD = "_token"
_OWN_SITES = ("same-origin", "none")
# Starlette writes `Partitioned` only with Python 3.14.
_IN_FRAMES = "Path=/; Secure; HttpOnly; SameSite=None; Partitioned"


def content_policy(frame_ancestors: Sequence[str] = (), logo: str | None = None) -> str:
    """`logo` is the origin of the only foreign image, which a host product shows."""
    ancestors = " ".join(frame_ancestors) or "'none'"
    images = f"'self' data: {logo}" if logo else "'self' data:"
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; "
        f"frame-ancestors {ancestors}"
    )


@dataclass(frozen=True, slots=True)
class Cookies:
    """Of the session, of what comes before it, and of the theme; scripts can read none of them.

    With `in_frames` the cookies of a host product's session are kept in its frames, for each site
    that shows one apart.
    """

    secure: bool
    in_frames: bool = False

    @property
    def session(self) -> str:
        return "__Host-cuepost" if self.secure else "cuepost"

    @property
    def pre_session(self) -> str:
        return "__Host-cuepost-context" if self.secure else "cuepost-context"

    @property
    def pending(self) -> str:
        """Of a sign-in that goes on at the OpenID provider."""
        return "__Host-cuepost-openid" if self.secure else "cuepost-openid"

    @property
    def operator(self) -> str:
        """Sent to the operator's pages alone, which a name with `__Host-` would not allow."""
        return "__Secure-cuepost-operator" if self.secure else "cuepost-operator"

    @property
    def portal(self) -> str:
        return f"{self.session}-portal"

    @property
    def portal_pre_session(self) -> str:
        return f"{self.pre_session}-portal"

    @property
    def theme(self) -> str:
        return "cuepost-theme"

    def put(
        self,
        response: Response,
        name: str,
        value: str,
        life: timedelta | None,
        *,
        path: str = "/",
        strict: bool = False,
    ) -> None:
        """With a lifetime instead of a date, because a browser's clock may be wrong."""
        if self._is_in_frame(name):
            age = f"; Max-Age={round(life.total_seconds())}" if life else ""
            response.headers.append("set-cookie", f"{name}={value}{age}; {_IN_FRAMES}")
            return
        response.set_cookie(
            name,
            value,
            max_age=round(life.total_seconds()) if life else None,
            path=path,
            secure=self.secure,
            httponly=True,
            samesite="strict" if strict else "lax",
        )

    def drop(self, response: Response, name: str, path: str = "/") -> None:
        if self._is_in_frame(name):
            response.headers.append("set-cookie", f'{name}=""; Max-Age=0; {_IN_FRAMES}')
            return
        response.delete_cookie(name, path=path, secure=self.secure, httponly=True, samesite="lax")

    def _is_in_frame(self, name: str) -> bool:
        return self.in_frames and name in (self.portal, self.portal_pre_session)


def form_token(cookie: str) -> str:
    """Derived from a cookie that neither scripts nor other sites can read."""
    made = hmac.digest(cookie.encode(), b"a form of the settings pages", sha256)
    return urlsafe_b64encode(made).decode().rstrip("=")


def comes_from_here(request: Request, base_url: str) -> bool:
    """By the headers in which a browser names the origin of a request."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in _OWN_SITES
    origin = request.headers.get("origin")
    parts = urlsplit(base_url)
    return origin is None or origin == f"{parts.scheme}://{parts.netloc}"


def carries_token(given: str, cookie: str | None) -> bool:
    return cookie is not None and hmac.compare_digest(given.encode(), form_token(cookie).encode())
