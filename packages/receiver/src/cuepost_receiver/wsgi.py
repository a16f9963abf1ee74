"""An inbox as a WSGI application, and as a view for Flask."""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from cuepost_receiver.body_limit import CONTENT_TYPE, MOST_BYTES, POST_ONLY, TOO_LARGE
from cuepost_receiver.inbox import Answer, Inbox

Environ = dict[str, Any]


class WsgiInbox:
    """A WSGI application; `view` is a view function for Flask."""

    def __init__(self, inbox: Inbox, *, most_bytes: int = MOST_BYTES) -> None:
        self.inbox = inbox
        self._most_bytes = most_bytes

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = self._answer(environ, environ["wsgi.input"].read)
        headers = [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(answer.body)))]
        start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", headers)
        return [answer.body]

    def view(self) -> tuple[bytes, int, dict[str, str]]:
        """`app.add_url_rule("/cuepost", view_func=hook.view, methods=["POST"])`"""
        from flask import request  # noqa: PLC0415  # only Flask's users have it

        # A body without a length is read as far as this: enough to see that it is too large.
        request.max_content_length = self._most_bytes + 1
        # Other code may have read the stream already; Flask caches the body.
        answer = self._answer(request.environ, lambda length: request.get_data())
        return answer.body, answer.status, {"Content-Type": CONTENT_TYPE}

    def _answer(self, environ: Environ, read: Callable[[int], bytes]) -> Answer:
        if environ["REQUEST_METHOD"] != "POST":
            return POST_ONLY
        try:
            length = int(environ.get("CONTENT_LENGTH") or 0)
        except ValueError:
            length = 0
        if length > self._most_bytes:
            return TOO_LARGE
        body = read(max(0, length))
        if len(body) > self._most_bytes:
            return TOO_LARGE
        return self.inbox.receive(body, _headers(environ))


def _headers(environ: Environ) -> dict[str, str]:
    return {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
