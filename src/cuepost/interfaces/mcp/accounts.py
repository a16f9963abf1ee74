"""Tools about accounts, for operator keys; they change nothing."""

from typing import Annotated

from msgspec import UNSET, Meta
from msgspec.structs import asdict

from cuepost.domain.access import Scope
from cuepost.domain.account_reference import account_reference
from cuepost.interfaces.mcp.kinds import Limit
from cuepost.interfaces.mcp.tool import Arguments, Tool, ToolContext
from cuepost.interfaces.wire_models.accounts import (
    Account,
    AccountList,
    AccountQuery,
    ExternalIdPrefix,
    NamePrefix,
    SearchCursor,
)
from cuepost.interfaces.wire_models.members import Member, MemberList
from cuepost.interfaces.wire_models.paging import DEFAULT_LIMIT, PageQuery, cut

AccountName = Annotated[
    str, Meta(max_length=300, description="Its id, or `external:` and its external id.")
]


class ListAccounts(Arguments, frozen=True):
    limit: Limit = DEFAULT_LIMIT
    cursor: SearchCursor | None = None
    name_prefix: NamePrefix | None = None
    external_id_prefix: ExternalIdPrefix | None = None


class ListMembers(Arguments, frozen=True):
    account: AccountName
    limit: Limit = DEFAULT_LIMIT
    cursor: (
        Annotated[str, Meta(max_length=100, description="`nextCursor` of the previous page.")]
        | None
    ) = None


class OneAccount(Arguments, frozen=True):
    account: AccountName


async def page(work: ToolContext, wanted: ListAccounts) -> AccountList:
    asked = {name: value for name, value in asdict(wanted).items() if value is not None}
    query = AccountQuery(**asked)
    found = await work.service.accounts.page(work.transaction, work.caller, query.wanted())
    return query.cut(found)


async def get(work: ToolContext, wanted: OneAccount) -> Account:
    reference = account_reference(wanted.account)
    return Account.of(await work.service.accounts.get(work.transaction, work.caller, reference))


async def members(work: ToolContext, wanted: ListMembers) -> MemberList:
    query = PageQuery(limit=wanted.limit, cursor=UNSET if wanted.cursor is None else wanted.cursor)
    found = await work.service.account_members.page(
        work.transaction, work.caller, account_reference(wanted.account), query.page()
    )
    return MemberList(*cut([Member.of(each) for each in found], wanted.limit))


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
    Tool(
        name="accounts_members_list",
        title="List the members of an account",
        description="List the people who sign in to the pages of an account, with their roles, "
        "newest first.",
        scope=Scope.ACCOUNTS_READ,
        arguments=ListMembers,
        answer=MemberList,
        reads=True,
        run=members,
    ),
)
