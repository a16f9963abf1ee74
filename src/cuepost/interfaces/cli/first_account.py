"""Creates the first account with its keys; creates nothing if there is an account already."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from cuepost.application.service import Service
from cuepost.domain.access import SERVICE_SCOPES, USUAL_SCOPES
from cuepost.interfaces.cli.runtime import CommandContext, operator
from cuepost.ports.store import Transaction

# An idempotency key for set-up. Claiming it also makes concurrent set-ups wait for each other until
# the transaction ends.
_SETUP = UUID(int=1)


@dataclass(frozen=True, slots=True)
class FirstAccount:
    """The keys and the link are None if there was an account already."""

    account_id: UUID
    api_key: str | None = field(default=None, repr=False)
    service_key: str | None = field(default=None, repr=False)
    sign_in_url: str | None = field(default=None, repr=False)
    inbox_url: str | None = field(default=None, repr=False)

    @property
    def is_new(self) -> bool:
        return self.api_key is not None

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "accountId": str(self.account_id),
            "apiKey": self.api_key,
            "serviceKey": self.service_key,
            "signInUrl": self.sign_in_url,
        }
        return shown if self.is_new else shown | {"alreadySetUp": True}

    def keys(self) -> dict[str, str]:
        """The account and its keys, with labels for the greeting."""
        keys = {"API key": self.api_key, "Service key": self.service_key}
        return {"Account": str(self.account_id)} | {
            name: key for name, key in keys.items() if key is not None
        }

    def known(self) -> dict[str, str]:
        """The account, its keys and the sign-in link, with labels."""
        return self.keys() | ({"Sign in at": self.sign_in_url} if self.sign_in_url else {})


async def make_first_account(context: CommandContext, *, with_link: bool = True) -> FirstAccount:
    service = context.service
    return await service.perform.change(
        lambda transaction: _make(service, transaction, with_link=with_link)
    )


async def _make(service: Service, transaction: Transaction, *, with_link: bool) -> FirstAccount:
    access, caller = service.access, operator()
    await transaction.idempotency.claim(_SETUP, _SETUP, "setup", b"", access.clock.now())
    accounts = await transaction.accounts.oldest(1)
    if accounts:
        return FirstAccount(accounts[0].id)
    account = await access.create_account(transaction, caller, "First account", True)
    key = await access.create_key(
        transaction, caller, account.id, name="First API key", scopes=USUAL_SCOPES
    )
    service_key = await access.create_key(
        transaction, caller, None, name="First service key", scopes=SERVICE_SCOPES
    )
    url = None
    if with_link:
        url = (await service.sign_in.make_link(transaction, caller, account.id)).url
    inbox = await service.inbox.of_account(transaction, account.id)
    return FirstAccount(
        account.id, key.token, service_key.token, url, service.inbox.address(inbox.token)
    )


async def sign_in_rows(
    context: CommandContext, first: FirstAccount, *, on_terminal: bool
) -> dict[str, str]:
    """The address of the settings pages, and a way to sign in while no user has a password.

    A sign-in link is shown only on a terminal: other output may end up in a log.
    """
    sign_in, account_id = context.service.sign_in, first.account_id
    pages = f"{context.settings.base_url}/settings"
    if first.sign_in_url is not None:
        return {"Pages": first.sign_in_url}
    if not await context.service.perform.read(
        lambda transaction: sign_in.needs_link(transaction, account_id)
    ):
        return {"Pages": pages}
    if not on_terminal:
        return {"Pages": pages, "Link": f"cuepost accounts sign-in-link {account_id}"}
    link = await context.service.perform.change(
        lambda transaction: sign_in.make_link(transaction, operator(), account_id)
    )
    return {"Pages": link.url}
