"""The operator's pages: the state of the service, its accounts, and their access."""

from uuid import UUID

from msgspec import UNSET
from starlette.responses import Response

from cuepost import __version__
from cuepost.application.watch_service import MOST_KEYS, MOST_MEMBERS, AccountState
from cuepost.domain.access import Account, Scope
from cuepost.interfaces.web.audit_sentences import Names, sentence
from cuepost.interfaces.web.delivery_filters import uuid_in
from cuepost.interfaces.web.figure_charts import RANGES, figure_charts, range_in
from cuepost.interfaces.web.operator_handler import HOME
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.wire_models.accounts import AccountQuery
from cuepost.ports.records import Page
from cuepost.ports.service_state import COUNTED_AT_MOST
from cuepost.ports.store import Transaction
from cuepost.tuning import LEASE_SECONDS

ACCOUNTS = f"{HOME}/accounts"
ACCOUNT = f"{ACCOUNTS}/{{account_id}}"
ROWS = 50
CLOSED_SHOWN = 10
SEARCHES = {"name": "Name", "external_id": "External id"}


async def show_overview(context: PageContext) -> Response:
    span, watching = range_in(context.query("range") or "1h"), context.service.watching
    overview = await context.see(lambda transaction: watching.overview(transaction, context.caller))
    figures = await context.browse(
        lambda transaction: watching.figures(transaction, context.caller, span)
    )
    secrets = await context.service.maintenance.master_keys.keys_of_secrets()
    dispatcher = context.site.dispatcher
    return context.page(
        "operator/overview.html",
        section="operator",
        overview=overview,
        figures=figures,
        charts=figure_charts(figures.figures, span),
        ranges=RANGES,
        lost_secrets=secrets.lost,
        dispatcher=None if dispatcher is None else dispatcher(),
        version=__version__,
        most=COUNTED_AT_MOST,
        closed_shown=CLOSED_SHOWN,
        lease_seconds=LEASE_SECONDS,
    )


async def show_accounts(context: PageContext) -> Response:
    by = context.query("by") if context.query("by") in SEARCHES else "name"
    text, cursor = context.query("q"), context.query("cursor")
    query = AccountQuery(
        limit=ROWS,
        cursor=cursor or UNSET,
        name_prefix=text if text and by == "name" else UNSET,
        external_id_prefix=text if text and by == "external_id" else UNSET,
    )
    service, caller = context.service, context.caller

    async def look(transaction: Transaction) -> tuple[list[Account], list[AccountState]]:
        # PostgreSQL stores no text with other characters.
        found = []
        if text.isprintable():
            found = await service.accounts.page(transaction, caller, query.wanted())
        return found, await service.watching.states(transaction, caller, found[:ROWS])

    found, states = await context.see(look)
    return context.page(
        "operator/accounts.html",
        section="accounts",
        states=states,
        further=query.cut(found).next_cursor,
        text=text,
        by=by,
        searches=SEARCHES,
    )


async def show_account(context: PageContext) -> Response:
    account_id, watching = context.id("account_id"), context.service.watching
    span = range_in(context.query("range"))
    details = await context.see(
        lambda transaction: watching.account(transaction, context.caller, account_id)
    )
    figures = await context.browse(
        lambda transaction: watching.figures_of(transaction, context.caller, account_id, span)
    )
    return context.page(
        "operator/account.html",
        section="accounts",
        account=details.state.account,
        state=details.state,
        keys=details.keys[:MOST_KEYS],
        more_keys=len(details.keys) > MOST_KEYS,
        members=details.members[:MOST_MEMBERS],
        more_members=len(details.members) > MOST_MEMBERS,
        charts=figure_charts(figures, span),
        ranges=RANGES,
        may_manage=context.caller.may(Scope.ACCOUNTS_MANAGE),
    )


async def open_access(context: PageContext) -> Response:
    return await _set_access(context, enabled=True)


async def close_access(context: PageContext) -> Response:
    return await _set_access(context, enabled=False)


async def _set_access(context: PageContext, *, enabled: bool) -> Response:
    account_id, watching = context.id("account_id"), context.service.watching
    await context.do(
        lambda transaction: watching.set_access(
            transaction, context.caller, account_id, enabled=enabled
        )
    )
    note = "access-opened" if enabled else "access-closed"
    return context.go(f"{ACCOUNTS}/{account_id}", note)


async def show_audit(context: PageContext) -> Response:
    return await _audit(context, None)


async def show_account_audit(context: PageContext) -> Response:
    return await _audit(context, context.id("account_id"))


async def _audit(context: PageContext, account_id: UUID | None) -> Response:
    page = Page(ROWS, uuid_in(context.query("before")))
    found = await context.browse(
        lambda transaction: context.service.watching.audit(
            transaction, context.caller, account_id, page
        )
    )
    names = Names(context.site.root, context.caller.actor, {}, with_links=False)
    return context.page(
        "operator/audit.html",
        section="accounts" if account_id else "audit",
        account_id=account_id,
        entries=[(entry, sentence(entry, names)) for entry in found.entries],
        further=found.further,
    )


ROUTES = (
    PageRoute(HOME, get=show_overview, reads=Scope.ACCOUNTS_READ),
    PageRoute(ACCOUNTS, get=show_accounts, reads=Scope.ACCOUNTS_READ),
    PageRoute(ACCOUNT, get=show_account, reads=Scope.ACCOUNTS_READ),
    PageRoute(f"{ACCOUNT}/open-access", post=open_access, writes=Scope.ACCOUNTS_MANAGE),
    PageRoute(f"{ACCOUNT}/close-access", post=close_access, writes=Scope.ACCOUNTS_MANAGE),
    PageRoute(f"{ACCOUNT}/audit", get=show_account_audit, reads=Scope.ACCOUNTS_READ),
    PageRoute(f"{HOME}/audit", get=show_audit, reads=Scope.ACCOUNTS_READ),
)
