"""An inbox as a Django view; needs `cuepost-receiver[django]`."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from cuepost_receiver.body_limit import CONTENT_TYPE, MOST_BYTES, POST_ONLY, TOO_LARGE
from cuepost_receiver.inbox import Answer, Inbox


def inbox_view(
    inbox: Inbox, *, most_bytes: int = MOST_BYTES
) -> Callable[[HttpRequest], HttpResponse]:
    """`path("cuepost", inbox_view(inbox))`; the signature replaces the CSRF token."""

    def view(request: HttpRequest) -> HttpResponse:
        answer = _answer(inbox, request, most_bytes)
        return HttpResponse(answer.body, content_type=CONTENT_TYPE, status=answer.status)

    exempt: Callable[[HttpRequest], HttpResponse] = csrf_exempt(view)
    return exempt


def _answer(inbox: Inbox, request: HttpRequest, most_bytes: int) -> Answer:
    if request.method != "POST":
        return POST_ONLY
    body = request.body
    if len(body) > most_bytes:
        return TOO_LARGE
    return inbox.receive(body, request.headers)
