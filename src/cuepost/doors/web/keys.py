"""API keys: create with scopes, shown once, revoke."""

import hashlib
from datetime import timedelta
from typing import NoReturn

from starlette.responses import Response

from cuepost.application.perform import IdempotentCall
from cuepost.domain.access import ACCOUNT_SCOPES, Scope
from cuepost.domain.errors import FieldError, Invalid, Refused
from cuepost.doors.web.visit import PageRoute, Visit
from cuepost.ports.store import Transaction

ALL = "/settings/keys"
MEANINGS = {
    Scope.WEBHOOKS_MANAGE: "Create, change, rotate, test, retry and delete webhooks.",
    Scope.WEBHOOKS_READ: "Read webhooks, events and deliveries.",
    Scope.PROJECTS_READ: "Read projects and fetch their results.",
    Scope.PROJECTS_WRITE: "Create, export, cancel and delete projects.",
}
LIFETIMES = {"": None, "30": 30, "90": 90, "365": 365}


async def show_all(visit: Visit) -> Response:
    return await _list(visit, ())


async def create(visit: Visit) -> Response:
    form = visit.form
    name, days = form.text("name").strip(), LIFETIMES.get(form.text("days"))
    scopes = [Scope(each) for each in form.all("scopes") if each in list(ACCOUNT_SCOPES)]
    expires_at = visit.house.now() + timedelta(days=days) if days else None

    async def act(transaction: Transaction) -> bytes:
        made = await visit.service.keys.create(
            transaction, visit.caller, name=name, scopes=scopes, expires_at=expires_at
        )
        return made.token.encode()

    once = form.text("once")
    what = hashlib.sha256(f"key {name} {scopes} {days}".encode()).digest()
    call = IdempotentCall(f"pages:{once}", what) if once else None
    try:
        answer = await visit.service.perform.once(visit.caller, call, act, _refuse)
    except Invalid as invalid:
        return await _list(visit, invalid.errors)
    return visit.page(
        "key_created.html", section="keys", name=name, key=answer.content.decode(), scopes=scopes
    )


async def revoke(visit: Visit) -> Response:
    key_id = visit.id("key_id")
    await visit.do(lambda transaction: visit.service.keys.revoke(transaction, visit.caller, key_id))
    return visit.go(ALL, "revoked")


def _refuse(refused: Refused) -> NoReturn:
    raise refused


async def _list(visit: Visit, errors: tuple[FieldError, ...]) -> Response:
    found = await visit.see(lambda transaction: visit.service.keys.all(transaction, visit.caller))
    return visit.page(
        "keys.html",
        422 if errors else 200,
        section="keys",
        keys=found,
        meanings=MEANINGS,
        errors=errors,
        name=visit.form.text("name"),
        picked=visit.form.all("scopes"),
        once=visit.form.text("once") or visit.once(),
    )


ROUTES = (
    PageRoute(ALL, get=show_all, post=create),
    PageRoute(f"{ALL}/{{key_id}}/revoke", post=revoke),
)
