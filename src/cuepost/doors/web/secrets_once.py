"""Where a signing secret appears, once: at creation, at rotation, at a one-time address."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn
from urllib.parse import quote
from uuid import UUID

from starlette.responses import Response

from cuepost.application.manage_webhooks import Unveiled
from cuepost.application.perform import IdempotentCall
from cuepost.domain.endpoint import subscription
from cuepost.domain.errors import FieldError, Invalid, Refused
from cuepost.doors.web.endpoints import CHOICES, LIST, ONE
from cuepost.doors.web.snippets import SNIPPETS
from cuepost.doors.web.visit import PageRoute, Visit
from cuepost.ports.store import Transaction


async def show_new(visit: Visit) -> Response:
    url = await _inbox_url(visit) if visit.query("inbox") else ""
    return _form(visit, url, subscription(None), "", ())


async def check_url(visit: Visit) -> Response:
    verdict = await visit.service.receivers.check(visit.caller, visit.form.text("url"))
    return visit.page("fragments/url_check.html", verdict=verdict)


async def create(visit: Visit) -> Response:
    form = visit.form
    url, events, description = (
        form.text("url").strip(),
        form.all("events"),
        form.text("description").strip(),
    )

    async def act(transaction: Transaction) -> Unveiled:
        return await visit.service.webhooks.create(
            transaction, visit.caller, url, events, description
        )

    try:
        return await _unveiled(visit, act, url + " ".join(events) + description, is_new=True)
    except Invalid as invalid:
        return _form(visit, url, events, description, invalid.errors)


async def show_rotate(visit: Visit) -> Response:
    webhook_id = visit.id("webhook_id")
    view = await visit.see(
        lambda transaction: visit.service.webhooks.get(transaction, visit.caller, webhook_id)
    )
    overlap = visit.service.webhooks.rotation_overlap
    return visit.page(
        "webhooks/rotate.html", section="webhooks", view=view, overlap=overlap, once=visit.once()
    )


async def rotate(visit: Visit) -> Response:
    webhook_id = visit.id("webhook_id")

    async def act(transaction: Transaction) -> Unveiled:
        return await visit.service.webhooks.rotate_secret(transaction, visit.caller, webhook_id)

    return await _unveiled(visit, act, f"rotate {webhook_id}", is_new=False)


async def show_reveal(visit: Visit) -> Response:
    token = visit.request.path_params["token"]
    reveal = await visit.see(
        lambda transaction: visit.service.reveals.waiting(transaction, visit.caller, token)
    )
    return visit.page("reveal.html", section="webhooks", reveal=reveal)


async def reveal(visit: Visit) -> Response:
    token = visit.request.path_params["token"]
    shown = await visit.do(
        lambda transaction: visit.service.reveals.show(transaction, visit.caller, token)
    )
    return await _secret_page(visit, shown.webhook_id, shown.secret.reveal(), is_new=False)


async def _unveiled(
    visit: Visit,
    act: Callable[[Transaction], Awaitable[Unveiled]],
    what: str,
    *,
    is_new: bool,
) -> Response:
    """A page that is loaded again shows the same secret, instead of making another one."""

    async def act_and_keep(transaction: Transaction) -> bytes:
        made = await act(transaction)
        kept = {"id": str(made.view.endpoint.id), "secret": made.secret.reveal()}
        return json.dumps(kept).encode()

    once = visit.form.text("once")
    call = IdempotentCall(f"pages:{once}", hashlib.sha256(what.encode()).digest()) if once else None
    answer = await visit.service.perform.once(visit.caller, call, act_and_keep, _refuse)
    kept = json.loads(answer.content)
    return await _secret_page(visit, UUID(kept["id"]), kept["secret"], is_new=is_new)


def _refuse(refused: Refused) -> NoReturn:
    raise refused


async def _secret_page(visit: Visit, webhook_id: UUID, secret: str, *, is_new: bool) -> Response:
    view = await visit.see(
        lambda transaction: visit.service.webhooks.get(transaction, visit.caller, webhook_id)
    )
    return visit.page(
        "webhooks/secret.html",
        section="webhooks",
        view=view,
        secret=secret,
        env_file="data:text/plain;charset=utf-8," + quote(f"CUEPOST_WEBHOOK_SECRET={secret}\n"),
        snippets=SNIPPETS,
        is_new=is_new,
    )


async def _inbox_url(visit: Visit) -> str:
    inbox = visit.service.inbox
    found = await visit.do(lambda transaction: inbox.mine(transaction, visit.caller))
    return inbox.address(found.token)


def _form(
    visit: Visit,
    url: str,
    events: Sequence[str],
    description: str,
    errors: Sequence[FieldError],
) -> Response:
    return visit.page(
        "webhooks/new.html",
        422 if errors else 200,
        section="webhooks",
        url=url,
        events=events,
        description=description,
        errors=errors,
        choices=CHOICES,
        once=visit.form.text("once") or visit.once(),
    )


ROUTES = (
    PageRoute(f"{LIST}/new", get=show_new, post=create),
    PageRoute(f"{LIST}/check", post=check_url),
    PageRoute(f"{ONE}/rotate", get=show_rotate, post=rotate),
    PageRoute("/reveal/{token}", get=show_reveal, post=reveal),
)
