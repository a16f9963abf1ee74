"""Pages that show a signing secret once: creation, rotation and the reveal address."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn
from urllib.parse import quote
from uuid import UUID

from starlette.responses import Response

from cuepost.application.manage_webhooks import EndpointWithSecret
from cuepost.application.perform import IdempotentCall
from cuepost.domain.access import Scope
from cuepost.domain.endpoint import subscription
from cuepost.domain.errors import FieldError, Invalid, Refused
from cuepost.interfaces.web.endpoints import CHOICES, LIST, ONE, checked_description
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.web.snippets import SNIPPETS
from cuepost.ports.store import Transaction


async def show_new(context: PageContext) -> Response:
    url = await _inbox_url(context) if context.query("inbox") else ""
    return _form(context, url, subscription(None), "", ())


async def check_url(context: PageContext) -> Response:
    verdict = await context.service.receivers.check(context.caller, context.form.text("url"))
    return context.page("fragments/url_check.html", verdict=verdict)


async def create(context: PageContext) -> Response:
    form = context.form
    url, events, description = (
        form.text("url").strip(),
        form.all("events"),
        form.text("description").strip(),
    )

    async def act(transaction: Transaction) -> EndpointWithSecret:
        return await context.service.webhooks.create(
            transaction, context.caller, url, events, checked_description(description)
        )

    try:
        return await _with_secret(context, act, url + " ".join(events) + description, is_new=True)
    except Invalid as invalid:
        return _form(context, url, events, description, invalid.errors)


async def show_rotate(context: PageContext) -> Response:
    webhook_id = context.id("webhook_id")
    view = await context.see(
        lambda transaction: context.service.webhooks.get(transaction, context.caller, webhook_id)
    )
    overlap = context.service.webhooks.rotation_overlap
    return context.page(
        "webhooks/rotate.html", section="webhooks", view=view, overlap=overlap, once=context.once()
    )


async def rotate(context: PageContext) -> Response:
    webhook_id = context.id("webhook_id")

    async def act(transaction: Transaction) -> EndpointWithSecret:
        return await context.service.webhooks.rotate_secret(transaction, context.caller, webhook_id)

    return await _with_secret(context, act, f"rotate {webhook_id}", is_new=False)


async def show_reveal(context: PageContext) -> Response:
    token = context.request.path_params["token"]
    reveal = await context.see(
        lambda transaction: context.service.reveals.waiting(transaction, context.caller, token)
    )
    return context.page("reveal.html", section="webhooks", reveal=reveal)


async def reveal(context: PageContext) -> Response:
    token = context.request.path_params["token"]
    shown = await context.do(
        lambda transaction: context.service.reveals.show(transaction, context.caller, token)
    )
    return await _secret_page(context, shown.webhook_id, shown.secret.reveal(), is_new=False)


async def _with_secret(
    context: PageContext,
    act: Callable[[Transaction], Awaitable[EndpointWithSecret]],
    what: str,
    *,
    is_new: bool,
) -> Response:
    """A page that is reloaded shows the same secret instead of creating another one."""

    async def act_and_keep(transaction: Transaction) -> bytes:
        made = await act(transaction)
        kept = {"id": str(made.view.endpoint.id), "secret": made.secret.reveal()}
        return json.dumps(kept).encode()

    once = context.form.text("once")
    call = IdempotentCall(f"pages:{once}", hashlib.sha256(what.encode()).digest()) if once else None
    answer = await context.service.perform.once(context.caller, call, act_and_keep, _refuse)
    kept = json.loads(answer.content)
    return await _secret_page(context, UUID(kept["id"]), kept["secret"], is_new=is_new)


def _refuse(refused: Refused) -> NoReturn:
    raise refused


async def _secret_page(
    context: PageContext, webhook_id: UUID, secret: str, *, is_new: bool
) -> Response:
    view = await context.see(
        lambda transaction: context.service.webhooks.get(transaction, context.caller, webhook_id)
    )
    return context.page(
        "webhooks/secret.html",
        section="webhooks",
        view=view,
        secret=secret,
        env_file="data:text/plain;charset=utf-8," + quote(f"CUEPOST_WEBHOOK_SECRET={secret}\n"),
        snippets=SNIPPETS,
        is_new=is_new,
    )


async def _inbox_url(context: PageContext) -> str:
    inbox = context.service.inbox
    found = await context.do(lambda transaction: inbox.mine(transaction, context.caller))
    return inbox.address(found.token)


def _form(
    context: PageContext,
    url: str,
    events: Sequence[str],
    description: str,
    errors: Sequence[FieldError],
) -> Response:
    return context.page(
        "webhooks/new.html",
        422 if errors else 200,
        section="webhooks",
        url=url,
        events=events,
        description=description,
        errors=errors,
        choices=CHOICES,
        once=context.form.text("once") or context.once(),
    )


ROUTES = (
    PageRoute(f"{LIST}/new", get=show_new, post=create, reads=Scope.WEBHOOKS_MANAGE),
    PageRoute(f"{LIST}/check", post=check_url),
    PageRoute(f"{ONE}/rotate", get=show_rotate, post=rotate, reads=Scope.WEBHOOKS_MANAGE),
    PageRoute("/reveal/{token}", get=show_reveal, post=reveal, reads=Scope.WEBHOOKS_MANAGE),
)
