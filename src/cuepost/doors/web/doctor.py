"""The signature doctor: why a delivery does not verify. Nothing that is pasted here is kept."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response

from cuepost.domain.errors import NotFound
from cuepost.doors.web.delivery_filters import uuid_in
from cuepost.doors.web.visit import PageRoute, Visit

if TYPE_CHECKING:
    from cuepost_receiver.doctor import Diagnosis

HERE = "/settings/doctor"


@dataclass(frozen=True, slots=True)
class Pasted:
    headers: str = ""
    body: str = ""
    computed: str = ""
    # Of a delivery from the list: it is judged as if it had just arrived.
    at: str = ""


async def show(visit: Visit) -> Response:
    return _page(visit, await _picked(visit), None)


async def examine(visit: Visit) -> Response:
    from cuepost_receiver.doctor import diagnose  # noqa: PLC0415  # the kit, when it is needed

    form = visit.form
    pasted = Pasted(
        form.text("headers"),
        # Browsers send the line ends of a text field as CRLF, whatever was pasted.
        form.text("body").replace("\r\n", "\n"),
        form.text("computed").strip(),
        form.text("at"),
    )
    found = diagnose(
        pasted.headers,
        pasted.body,
        form.text("secrets").split(),
        now=float(pasted.at) if pasted.at.isdecimal() else visit.house.now().timestamp(),
        computed=pasted.computed or None,
    )
    return _page(visit, pasted, found)


ROUTES = (PageRoute(HERE, get=show, post=examine),)


async def _picked(visit: Visit) -> Pasted:
    """The last attempt of a delivery, exactly as it was sent."""
    webhook_id, delivery_id = uuid_in(visit.query("webhook")), uuid_in(visit.query("delivery"))
    if webhook_id is None or delivery_id is None:
        return Pasted()
    detail = await visit.see(
        lambda transaction: visit.service.history.delivery(
            transaction, visit.caller, webhook_id, delivery_id
        )
    )
    sent = dict(detail.last_attempt.request_headers) if detail.last_attempt else {}
    if not sent:
        raise NotFound("This delivery has no attempt yet whose signature could be checked.")
    lines = [f"{name}: {sent[name]}" for name in sent if name.startswith("webhook-")]
    return Pasted("\n".join(lines), detail.event.body.decode(), "", sent["webhook-timestamp"])


def _page(visit: Visit, pasted: Pasted, found: "Diagnosis | None") -> Response:
    return visit.page("doctor.html", section="doctor", pasted=pasted, found=found)
