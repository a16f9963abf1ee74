"""Webhook endpoints: list, show, edit, enable, disable, test, delete."""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit
from uuid import UUID

from starlette.responses import Response

from cuepost.application.browse_history import EndFilter, Searched
from cuepost.application.delivery_figures import Figures
from cuepost.application.manage_webhooks import EndpointChange, EndpointView
from cuepost.domain.access import Scope
from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.event_catalog import CATALOG
from cuepost.interfaces.web import charts, sentences
from cuepost.interfaces.web.endpoint_list import ORDERS, called, list_choice
from cuepost.interfaces.web.figure_charts import RANGES, figure_charts, range_in
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.wire_models.shapes import TEXT
from cuepost.interfaces.wire_models.webhooks import LONGEST_DESCRIPTION
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

LIST = "/settings/webhooks"
ONE = "/settings/webhooks/{webhook_id}"
MOST_SHOWN = 100
# Far more than the usual limit of an account, which an operator can raise.
MOST_SEARCHED = 1_000
# An account with more endpoints than this gets the search box.
HANDFUL = 5
RECENT = 5
CHOICES = tuple(entry for entry in CATALOG if entry.subscribable)


async def show_all(context: PageContext) -> Response:
    service, caller, choice = context.service, context.caller, list_choice(context)
    everything = await context.see(
        lambda transaction: service.webhooks.page(transaction, caller, Page(MOST_SEARCHED))
    )
    matching = choice.of(everything)
    views = matching[:MOST_SHOWN]
    ids = [view.endpoint.id for view in views]
    figures = await context.browse(
        lambda transaction: service.figures.of_endpoints(transaction, caller, ids)
    )
    now = context.site.now()
    return context.page(
        "webhooks/list.html",
        section="webhooks",
        views=views,
        count=len(everything),
        matching=len(matching),
        is_searchable=len(everything) > HANDFUL or bool(choice),
        may_lack_older=len(everything) == MOST_SEARCHED,
        choice=choice,
        orders=ORDERS,
        figures=figures,
        charts={each: charts.bars(found, 120, 28) for each, found in figures.items()},
        summary={view.endpoint.id: sentences.of_health(view.health, now) for view in views},
    )


async def show(context: PageContext) -> Response:
    webhook_id, span = context.id("webhook_id"), range_in(context.query("range"))

    async def read(transaction: Transaction) -> tuple[Figures, Searched]:
        service, caller = context.service, context.caller
        figures = await service.figures.of_endpoint(transaction, caller, webhook_id, span)
        wanted = DeliveryFilter(webhook_id=webhook_id)
        return figures, await service.history.search(
            transaction, caller, wanted, EndFilter(), Page(RECENT)
        )

    view = await view_of(context)
    figures, recent = await context.browse(read)
    return context.page(
        "webhooks/show.html",
        section="webhooks",
        view=view,
        summary=sentences.of_health(view.health, context.site.now()),
        charts=figure_charts(figures, span),
        ranges=RANGES,
        recent=recent.deliveries,
        host=host_of(view),
    )


async def show_keyring(context: PageContext) -> Response:
    view = await view_of(context)
    return context.page("webhooks/keyring.html", section="webhooks", view=view, host=host_of(view))


async def show_edit(context: PageContext) -> Response:
    view = await view_of(context)
    endpoint = view.endpoint
    return _form(
        context,
        view,
        url=endpoint.url,
        events=endpoint.events,
        description=endpoint.description,
        errors=(),
    )


async def edit(context: PageContext) -> Response:
    webhook_id, form = context.id("webhook_id"), context.form
    url, events, description = (
        form.text("url").strip(),
        form.all("events"),
        form.text("description").strip(),
    )
    try:
        wanted = EndpointChange(
            url=url, events=events, description=checked_description(description)
        )
        await context.do(
            lambda transaction: context.service.webhooks.change(
                transaction, context.caller, webhook_id, wanted
            )
        )
    except Invalid as invalid:
        return _form(
            context,
            await view_of(context),
            url=url,
            events=events,
            description=description,
            errors=invalid.errors,
        )
    return context.go(f"{LIST}/{webhook_id}/edit", "saved")


async def enable(context: PageContext) -> Response:
    return await _switched(context, True)


async def disable(context: PageContext) -> Response:
    return await _switched(context, False)


async def end_overlap(context: PageContext) -> Response:
    webhook_id = context.id("webhook_id")
    await context.do(
        lambda transaction: context.service.webhooks.end_overlap(
            transaction, context.caller, webhook_id
        )
    )
    return context.go(f"{LIST}/{webhook_id}/secret", "overlap-ended")


async def send_test(context: PageContext) -> Response:
    webhook_id = context.id("webhook_id")
    delivery = await context.do(
        lambda transaction: context.service.webhooks.send_test(
            transaction, context.caller, webhook_id
        )
    )
    where = f"{LIST}/{webhook_id}/deliveries/{delivery.id}"
    if context.is_fragment:
        return context.page("fragments/progress.html", delivery=delivery, where=where, summary=None)
    return context.go(where, "test-sent")


async def show_delete(context: PageContext) -> Response:
    view = await view_of(context)
    return context.page(
        "webhooks/delete.html", section="webhooks", view=view, host=host_of(view), fault=None
    )


async def delete(context: PageContext) -> Response:
    view = await view_of(context)
    if context.form.text("host").strip().lower() != host_of(view):
        fault = f"Type {host_of(view)} to go on; nothing was deleted."
        return context.page(
            "webhooks/delete.html",
            422,
            section="webhooks",
            view=view,
            host=host_of(view),
            fault=fault,
        )
    await context.do(
        lambda transaction: context.service.webhooks.delete(
            transaction, context.caller, view.endpoint.id
        )
    )
    return context.go(LIST, "deleted")


def checked_description(description: str) -> str:
    """The limits of REST."""
    if len(description) > LONGEST_DESCRIPTION or not re.match(TEXT, description):
        fault = f"Use at most {LONGEST_DESCRIPTION} characters, and no control characters."
        raise Invalid(FieldError("description", "description_invalid", fault))
    return description


def names_of(views: Iterable[EndpointView]) -> dict[UUID, str]:
    """For rows, where the scheme would only take room."""
    return {each.endpoint.id: called(each.endpoint).removeprefix("https://") for each in views}


def host_of(view: EndpointView) -> str:
    return urlsplit(view.endpoint.url).hostname or view.endpoint.url


async def view_of(context: PageContext) -> EndpointView:
    webhook_id = context.id("webhook_id")
    return await context.see(
        lambda transaction: context.service.webhooks.get(transaction, context.caller, webhook_id)
    )


async def _switched(context: PageContext, enabled: bool) -> Response:
    webhook_id = context.id("webhook_id")
    await context.do(
        lambda transaction: context.service.webhooks.change(
            transaction, context.caller, webhook_id, EndpointChange(enabled=enabled)
        )
    )
    return context.go(f"{LIST}/{webhook_id}", "enabled" if enabled else "disabled")


def _form(
    context: PageContext,
    view: EndpointView,
    *,
    url: str,
    events: Sequence[str],
    description: str,
    errors: Sequence[FieldError],
) -> Response:
    return context.page(
        "webhooks/edit.html",
        422 if errors else 200,
        section="webhooks",
        view=view,
        url=url,
        events=events,
        description=description,
        errors=errors,
        choices=CHOICES,
    )


ROUTES = (
    PageRoute(LIST, get=show_all),
    PageRoute(f"{ONE}/secret", get=show_keyring),
    PageRoute(f"{ONE}/edit", get=show_edit, post=edit, reads=Scope.WEBHOOKS_MANAGE),
    PageRoute(f"{ONE}/enable", post=enable),
    PageRoute(f"{ONE}/disable", post=disable),
    PageRoute(f"{ONE}/end-overlap", post=end_overlap),
    PageRoute(f"{ONE}/test", post=send_test),
    PageRoute(f"{ONE}/delete", get=show_delete, post=delete, reads=Scope.WEBHOOKS_MANAGE),
    PageRoute(ONE, get=show),
)
