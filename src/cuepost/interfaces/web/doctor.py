"""The signature doctor: why a delivery does not verify. Nothing that is pasted is stored."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response

from cuepost.domain.errors import FieldError, Invalid, NotFound
from cuepost.interfaces.web.delivery_filters import uuid_in
from cuepost.interfaces.web.page_context import PageContext, PageRoute

if TYPE_CHECKING:
    from cuepost_receiver.doctor import Diagnosis

HERE = "/settings/doctor"
LONGEST = 65_536


@dataclass(frozen=True, slots=True)
class Pasted:
    headers: str = ""
    body: str = ""
    computed: str = ""
    # The time of a stored delivery, which is examined as if it had just arrived.
    at: str = ""


async def show(context: PageContext) -> Response:
    return _page(context, await _prefilled(context), None)


async def examine(context: PageContext) -> Response:
    from cuepost_receiver.doctor import diagnose  # noqa: PLC0415  # loaded on demand

    form = context.form
    if any(len(form.text(name)) > LONGEST for name in ("headers", "body")):
        raise Invalid(FieldError("body", "too_long", "Paste at most 64 KiB of headers and body."))
    pasted = Pasted(
        form.text("headers"),
        # Browsers send every line end of a text field as CRLF.
        form.text("body").replace("\r\n", "\n"),
        form.text("computed").strip(),
        form.text("at"),
    )
    found = diagnose(
        pasted.headers,
        pasted.body,
        form.text("secrets").split(),
        now=float(pasted.at) if pasted.at.isdecimal() else context.site.now().timestamp(),
        computed=pasted.computed or None,
    )
    return _page(context, pasted, found)


ROUTES = (PageRoute(HERE, get=show, post=examine, writes=None),)


async def _prefilled(context: PageContext) -> Pasted:
    """The request of the last attempt of a delivery."""
    webhook_id, delivery_id = uuid_in(context.query("webhook")), uuid_in(context.query("delivery"))
    if webhook_id is None or delivery_id is None:
        return Pasted()
    detail = await context.see(
        lambda transaction: context.service.history.delivery(
            transaction, context.caller, webhook_id, delivery_id
        )
    )
    sent = dict(detail.last_attempt.request_headers) if detail.last_attempt else {}
    if not sent:
        raise NotFound("This delivery has no attempt yet whose signature could be checked.")
    lines = [f"{name}: {sent[name]}" for name in sent if name.startswith("webhook-")]
    return Pasted("\n".join(lines), detail.event.body.decode(), "", sent["webhook-timestamp"])


def _page(context: PageContext, pasted: Pasted, found: "Diagnosis | None") -> Response:
    return context.page("doctor.html", section="doctor", pasted=pasted, found=found)
