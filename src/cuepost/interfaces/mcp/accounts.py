"""Tools about accounts, for operator keys; they change nothing."""

from typing import Annotated

from msgspec import UNSET, Meta

from cuepost.domain.access import Scope
from cuepost.domain.account_reference import EXTERNAL_ID, account_reference
from cuepost.interfaces.mcp.kinds import Limit
from cuepost.interfaces.mcp.tool import Arguments, Tool, ToolContext
from cuepost.interfaces.wire_models.accounts import Account, AccountList, AccountQuery
from cuepost.interfaces.wire_models.paging import DEFAULT_LIMIT
from cuepost.interfaces.wire_models.shapes import LINE
from cuepost.ports.records import Page


class ListAccounts(Arguments, frozen=True):
    limit: Limit = DEFAULT_LIMIT
    cursor: (
        Annotated[str, Meta(max_length=1_500, description="`nextCursor` of the previous page.")]
        | None
    ) = None
    name_prefix: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=200,
                pattern=LINE,
                description="Only names that begin with this, in any case.",
            ),
        ]
        | None
    ) = None
    external_id_prefix: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=200,
                pattern=EXTERNAL_ID,
                description="Only external ids that begin with this.",
            ),
        ]
        | None
    ) = None


class OneAccount(Arguments, frozen=True):
    account: Annotated[
        str, Meta(max_length=300, description="Its id, or `external:` and its external id.")
    ]


async def page(work: ToolContext, wanted: ListAccounts) -> AccountList:
    query = AccountQuery(
        limit=wanted.limit,
        cursor=UNSET if wanted.cursor is None else wanted.cursor,
        name_prefix=UNSET if wanted.name_prefix is None else wanted.name_prefix,
        external_id_prefix=(
            UNSET if wanted.external_id_prefix is None else wanted.external_id_prefix
        ),
    )
    asked = query.wanted()
    if isinstance(asked, Page):
        found = await work.service.accounts.page(work.transaction, work.caller, asked)
    else:
        found = await work.service.accounts.search(work.transaction, work.caller, asked)
    return query.cut(found)


async def get(work: ToolContext, wanted: OneAccount) -> Account:
    reference = account_reference(wanted.account)
    return Account.of(await work.service.accounts.get(work.transaction, work.caller, reference))


TOOLS = (
    Tool(
        name="accounts_list",
        title="List accounts",
        description="List the accounts of the service, newest first, or search for them by the "
        "beginning of the name or of the external id, in that order.",
        scope=Scope.ACCOUNTS_READ,
        arguments=ListAccounts,
        answer=AccountList,
        reads=True,
        run=page,
    ),
    Tool(
        name="accounts_get",
        title="Get an account",
        description="Get an account with its access to webhooks and its state.",
        scope=Scope.ACCOUNTS_READ,
        arguments=OneAccount,
        answer=Account,
        reads=True,
        run=get,
    ),
)
