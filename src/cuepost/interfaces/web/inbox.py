"""The test inbox: its messages, their signatures, and how it answers."""

from typing import Any

from starlette.responses import Response

from cuepost.domain.errors import NotFound
from cuepost.domain.inbox import Inbox, InboxAnswer, InboxMessage
from cuepost.interfaces.web.endpoints import MOST_SHOWN
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

ANSWERS = {
    InboxAnswer.OK: "200, acknowledged",
    InboxAnswer.NOT_FOUND: "404, as for a wrong path",
    InboxAnswer.SERVER_ERROR: "500, as for a server error",
    InboxAnswer.SLOW: "no answer before the timeout",
    InboxAnswer.CLOSE: "no answer, the connection is closed",
    InboxAnswer.REDIRECT: "302, a redirect",
}
SHOWN = 20


async def go_to_mine(context: PageContext) -> Response:
    """The inbox is created when it is first opened."""
    mine = await context.do(
        lambda transaction: context.service.inbox.mine(transaction, context.caller)
    )
    return context.go(f"/inbox/{mine.token}")


async def show(context: PageContext) -> Response:
    token = context.request.path_params["token"]

    async def read(transaction: Transaction) -> tuple[Inbox, list[InboxMessage], list[str]]:
        service, caller = context.service, context.caller
        inbox = await service.inbox.opened(transaction, caller, token)
        messages = await service.inbox.messages(transaction, caller, SHOWN)
        views = await service.webhooks.page(transaction, caller, Page(MOST_SHOWN))
        url = service.inbox.address(token)
        return inbox, messages, [str(v.endpoint.id) for v in views if v.endpoint.url == url]

    inbox, messages, endpoints = await context.see(read)
    values: dict[str, Any] = {
        "inbox": inbox,
        "messages": messages,
        "endpoints": endpoints,
        "url": context.service.inbox.address(token),
        "answers": ANSWERS,
        "section": "inbox",
    }
    template = "fragments/inbox_messages.html" if context.is_fragment else "inbox.html"
    return context.page(template, **values)


async def answer(context: PageContext) -> Response:
    token, wanted = context.request.path_params["token"], context.form.text("answer")
    if wanted not in list(InboxAnswer):
        raise NotFound
    await context.do(
        lambda transaction: context.service.inbox.answer_with(
            transaction, context.caller, token, InboxAnswer(wanted)
        )
    )
    return context.go(f"/inbox/{token}", "inbox-answer")


async def clear(context: PageContext) -> Response:
    token = context.request.path_params["token"]
    await context.do(
        lambda transaction: context.service.inbox.clear(transaction, context.caller, token)
    )
    return context.go(f"/inbox/{token}", "inbox-cleared")


ROUTES = (
    PageRoute("/settings/inbox", get=go_to_mine),
    PageRoute("/inbox/{token}", get=show),
    PageRoute("/inbox/{token}/answer", post=answer),
    PageRoute("/inbox/{token}/clear", post=clear),
)
