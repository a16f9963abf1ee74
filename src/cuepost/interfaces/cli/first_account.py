"""The first account with its keys: made once, however often and from wherever it is asked for."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from cuepost.application.service import Service
from cuepost.domain.access import ACCOUNT_SCOPES, SERVICE_SCOPES
from cuepost.interfaces.cli.runtime import Opened, operator
from cuepost.ports.store import Transaction

# Set-up is idempotent under a key of its own; claiming it also makes two that run at once take
# turns, until the transaction ends.
_TURN = UUID(int=1)


@dataclass(frozen=True, slots=True)
class FirstAccount:
    """The keys and the link are None when there was an account already."""

    account_id: UUID
    api_key: str | None = field(default=None, repr=False)
    service_key: str | None = field(default=None, repr=False)
    sign_in_url: str | None = field(default=None, repr=False)

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
        """For people."""
        keys = {"API key": self.api_key, "Service key": self.service_key}
        return {"Account": str(self.account_id)} | {
            name: key for name, key in keys.items() if key is not None
        }

    def known(self) -> dict[str, str]:
        """The keys, and where to sign in."""
        return self.keys() | ({"Sign in at": self.sign_in_url} if self.sign_in_url else {})


async def make_first_account(opened: Opened, *, with_link: bool = True) -> FirstAccount:
    service = opened.service
    return await service.perform.change(
        lambda transaction: _make(service, transaction, with_link=with_link)
    )


async def _make(service: Service, transaction: Transaction, *, with_link: bool) -> FirstAccount:
    access, caller = service.access, operator()
    await transaction.idempotency.claim(_TURN, _TURN, "setup", b"", access.clock.now())
    accounts = await transaction.accounts.all()
    if accounts:
        return FirstAccount(accounts[0].id)
    account = await access.create_account(transaction, caller, "First account", True)
    key = await access.create_key(
        transaction, caller, account.id, name="First API key", scopes=ACCOUNT_SCOPES
    )
    service_key = await access.create_key(
        transaction, caller, None, name="First service key", scopes=SERVICE_SCOPES
    )
    url = None
    if with_link:
        url = (await service.sign_in.make_link(transaction, caller, account.id)).url
    return FirstAccount(account.id, key.token, service_key.token, url)


async def sign_in_hints(
    opened: Opened, first: FirstAccount, *, on_terminal: bool
) -> dict[str, str]:
    """Where the pages are, and how somebody gets in as long as nobody has a password.

    A link is shown on a terminal alone: elsewhere the greeting goes into a log, which others read.
    """
    sign_in, account_id = opened.service.sign_in, first.account_id
    pages = f"{opened.settings.base_url}/settings"
    if first.sign_in_url is not None:
        return {"Pages": first.sign_in_url}
    if not await opened.service.perform.read(
        lambda transaction: sign_in.needs_link(transaction, account_id)
    ):
        return {"Pages": pages}
    if not on_terminal:
        return {"Pages": pages, "Link": f"cuepost accounts sign-in-link {account_id}"}
    link = await opened.service.perform.change(
        lambda transaction: sign_in.make_link(transaction, operator(), account_id)
    )
    return {"Pages": link.url}
