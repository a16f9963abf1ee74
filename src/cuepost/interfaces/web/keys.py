"""API keys: create with scopes, show once, revoke."""

import hashlib
import re
from datetime import timedelta
from typing import NoReturn

from starlette.responses import Response

from cuepost.application.perform import IdempotentCall
from cuepost.domain.access import ACCOUNT_SCOPES, Scope
from cuepost.domain.errors import FieldError, Invalid, Refused
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.wire_models.shapes import LINE, PATTERN_FAULTS
from cuepost.ports.store import Transaction

ALL = "/settings/keys"
MEANINGS = {
    Scope.WEBHOOKS_MANAGE: "Create, change, rotate, test, retry and delete webhooks.",
    Scope.WEBHOOKS_READ: "Read webhooks, events and deliveries.",
    Scope.PROJECTS_READ: "Read projects and fetch their results.",
    Scope.PROJECTS_WRITE: "Create, export, cancel and delete projects.",
    Scope.MEMBERS_READ: "Read members and open invitations.",
    Scope.MEMBERS_MANAGE: "Invite people, change their roles and remove them, owners included.",
}
LIFETIMES = {"": None, "30": 30, "90": 90, "365": 365}


async def show_all(context: PageContext) -> Response:
    return await _list(context, ())


async def create(context: PageContext) -> Response:
    form = context.form
    name, days = form.text("name").strip(), LIFETIMES.get(form.text("days"))
    scopes = [Scope(each) for each in form.all("scopes") if each in list(ACCOUNT_SCOPES)]
    expires_at = context.site.now() + timedelta(days=days) if days else None

    async def act(transaction: Transaction) -> bytes:
        if not re.match(LINE, name):
            raise Invalid(FieldError("name", *PATTERN_FAULTS[LINE]))
        made = await context.service.keys.create(
            transaction, context.caller, name=name, scopes=scopes, expires_at=expires_at
        )
        return made.token.encode()

    once = form.text("once")
    what = hashlib.sha256(f"key {name} {scopes} {days}".encode()).digest()
    call = IdempotentCall(f"pages:{once}", what) if once else None
    try:
        answer = await context.service.perform.once(context.caller, call, act, _refuse)
    except Invalid as invalid:
        return await _list(context, invalid.errors)
    return context.page(
        "key_created.html", section="keys", name=name, key=answer.content.decode(), scopes=scopes
    )


async def revoke(context: PageContext) -> Response:
    key_id = context.id("key_id")
    await context.do(
        lambda transaction: context.service.keys.revoke(transaction, context.caller, key_id)
    )
    return context.go(ALL, "revoked")


def _refuse(refused: Refused) -> NoReturn:
    raise refused


async def _list(context: PageContext, errors: tuple[FieldError, ...]) -> Response:
    found = await context.see(
        lambda transaction: context.service.keys.all(transaction, context.caller)
    )
    return context.page(
        "keys.html",
        422 if errors else 200,
        section="keys",
        keys=found,
        meanings=MEANINGS,
        may_manage=context.caller.may(Scope.MEMBERS_MANAGE),
        errors=errors,
        name=context.form.text("name"),
        selected_scopes=context.form.all("scopes"),
        once=context.form.text("once") or context.once(),
    )


ROUTES = (
    PageRoute(ALL, get=show_all, post=create, writes=Scope.MEMBERS_MANAGE),
    PageRoute(f"{ALL}/{{key_id}}/revoke", post=revoke, writes=Scope.MEMBERS_MANAGE),
)
