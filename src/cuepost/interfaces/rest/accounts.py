"""Calls of the operator about accounts and their keys."""

from typing import Any

from cuepost.application.service import Service
from cuepost.domain.access import Scope
from cuepost.domain.account_reference import AccountReference
from cuepost.domain.errors import AccountErasing, ExternalIdTaken
from cuepost.interfaces.rest.answers import Reply
from cuepost.interfaces.rest.operation import Call, NoInput, Operation
from cuepost.interfaces.rest.running import changing, reading
from cuepost.interfaces.wire_models.accounts import (
    Account,
    AccountList,
    AccountQuery,
    ApiKey,
    ApiKeyList,
    CreateAccount,
    CreateApiKey,
    CreatedApiKey,
    UpdateAccount,
)
from cuepost.interfaces.wire_models.paging import PageQuery, cut
from cuepost.interfaces.wire_models.shapes import given, optional_instant
from cuepost.ports.store import Transaction

ACCOUNTS = "/v1/accounts"
ACCOUNT = "/v1/accounts/{accountId}"
_TAG = "Accounts"

_Plain = Call[NoInput, NoInput]


def named_account(call: Call[Any, Any]) -> AccountReference:
    assert call.account is not None
    return call.account


async def create(
    service: Service, transaction: Transaction, call: Call[CreateAccount, NoInput]
) -> Reply:
    made = await service.accounts.create(
        transaction,
        call.caller,
        name=call.body.name,
        external_id=given(call.body.external_id),
        webhooks_enabled=call.body.webhooks_enabled,
    )
    return Reply(Account.of(made), f"{ACCOUNTS}/{made.id}")


async def page(
    service: Service, transaction: Transaction, call: Call[NoInput, AccountQuery]
) -> Reply:
    found = await service.accounts.page(transaction, call.caller, call.query.wanted())
    return Reply(call.query.cut(found))


async def get(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    return Reply(
        Account.of(await service.accounts.get(transaction, call.caller, named_account(call)))
    )


async def update(
    service: Service, transaction: Transaction, call: Call[UpdateAccount, NoInput]
) -> Reply:
    changed = await service.accounts.change(
        transaction, call.caller, named_account(call), call.body.change()
    )
    return Reply(Account.of(changed))


async def erase(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    erasing = await service.accounts.erase(transaction, call.caller, named_account(call))
    return Reply(Account.of(erasing), f"{ACCOUNTS}/{erasing.id}")


async def keys(service: Service, transaction: Transaction, call: Call[NoInput, PageQuery]) -> Reply:
    found = await service.accounts.keys(
        transaction, call.caller, named_account(call), call.query.page()
    )
    return Reply(ApiKeyList(*cut([ApiKey.of(each) for each in found], call.query.limit)))


async def create_key(
    service: Service, transaction: Transaction, call: Call[CreateApiKey, NoInput]
) -> Reply:
    made = await service.accounts.create_key(
        transaction,
        call.caller,
        named_account(call),
        name=call.body.name,
        scopes=call.body.chosen_scopes(),
        expires_at=optional_instant(call.body.expires_at, "expiresAt"),
    )
    return Reply(CreatedApiKey.made(made), f"{ACCOUNTS}/{made.key.account_id}/keys")


async def revoke_key(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    await service.accounts.revoke_key(
        transaction, call.caller, named_account(call), call.ids["keyId"]
    )
    return Reply()


def _access_operation(verb: str, *, opens: bool, description: str = "") -> Operation:
    async def run(service: Service, transaction: Transaction, call: _Plain) -> Reply:
        account = named_account(call)
        changed = await service.accounts.set_webhooks(transaction, call.caller, account, opens)
        return Reply(Account.of(changed))

    return Operation(
        method="POST",
        path=f"{ACCOUNT}/{verb}-access",
        name=f"{verb}Access",
        tag=_TAG,
        summary=f"{verb.capitalize()} webhooks to an account",
        description=description,
        scope=Scope.ACCOUNTS_MANAGE,
        answer=Account,
        refusals=(AccountErasing,),
        run=changing(run),
    )


OPERATIONS = (
    Operation(
        method="POST",
        path=ACCOUNTS,
        name="createAccount",
        tag=_TAG,
        summary="Create an account",
        description="If an account has this `externalId` already, the answer is 409 "
        "`external_id_taken`, and `accountId` says which one.",
        scope=Scope.ACCOUNTS_MANAGE,
        body=CreateAccount,
        status=201,
        answer=Account,
        refusals=(ExternalIdTaken,),
        run=changing(create),
    ),
    Operation(
        method="GET",
        path=ACCOUNTS,
        name="listAccounts",
        tag=_TAG,
        summary="List accounts, or search for them",
        description="Newest first; with `namePrefix` or `externalIdPrefix` in the order of the "
        "name or of the external id.",
        scope=Scope.ACCOUNTS_READ,
        query=AccountQuery,
        answer=AccountList,
        run=reading(page),
    ),
    Operation(
        method="GET",
        path=ACCOUNT,
        name="getAccount",
        tag=_TAG,
        summary="Get an account",
        scope=Scope.ACCOUNTS_READ,
        answer=Account,
        run=reading(get),
    ),
    Operation(
        method="PATCH",
        path=ACCOUNT,
        name="updateAccount",
        tag=_TAG,
        summary="Change the name or the external id of an account",
        scope=Scope.ACCOUNTS_MANAGE,
        body=UpdateAccount,
        answer=Account,
        refusals=(ExternalIdTaken, AccountErasing),
        run=changing(update),
    ),
    _access_operation("open", opens=True),
    _access_operation("close", opens=False, description="Deliveries that wait are cancelled."),
    Operation(
        method="GET",
        path=f"{ACCOUNT}/keys",
        name="listAccountKeys",
        tag=_TAG,
        summary="List the keys of an account",
        description="Revoked keys are listed as well.",
        scope=Scope.ACCOUNTS_READ,
        query=PageQuery,
        answer=ApiKeyList,
        run=reading(keys),
    ),
    Operation(
        method="POST",
        path=f"{ACCOUNT}/keys",
        name="createAccountKey",
        tag=_TAG,
        summary="Create a key of an account",
        description="The answer holds the key; it is never shown again.",
        scope=Scope.ACCOUNTS_MANAGE,
        body=CreateApiKey,
        status=201,
        answer=CreatedApiKey,
        refusals=(AccountErasing,),
        run=changing(create_key),
    ),
    Operation(
        method="DELETE",
        path=f"{ACCOUNT}/keys/{{keyId}}",
        name="revokeAccountKey",
        tag=_TAG,
        summary="Revoke a key of an account",
        description="Every process refuses it within a second.",
        scope=Scope.ACCOUNTS_MANAGE,
        status=204,
        answer=None,
        run=changing(revoke_key),
    ),
    Operation(
        method="DELETE",
        path=ACCOUNT,
        name="deleteAccount",
        tag=_TAG,
        summary="Erase an account",
        description="Its keys stop working and its deliveries are cancelled at once. Everything "
        "of it is then removed in the background, with the files of its exports; until that is "
        "done its `state` is `erasing`, and its `externalId` is taken.",
        scope=Scope.ACCOUNTS_MANAGE,
        status=202,
        answer=Account,
        run=changing(erase),
    ),
)
