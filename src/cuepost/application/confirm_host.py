"""Actions that cannot be undone need the name of the affected host as a confirmation."""

from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from cuepost.domain.access import Caller, Scope
from cuepost.domain.errors import FieldError, Invalid, NotFound
from cuepost.ports.store import Transaction

FIELD = "confirm_host"


@dataclass(frozen=True, slots=True)
class ConfirmHost:
    """For projects the host is that of `base_url`, for endpoints that of their URL."""

    base_url: str

    async def of_endpoint(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID, given: str | None
    ) -> None:
        """Locks the endpoint, so that its URL cannot change before the action."""
        account_id = caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        endpoint = await transaction.endpoints.lock(account_id, webhook_id)
        if endpoint is None:
            raise NotFound
        _require(given, endpoint.url, "the host of the endpoint's URL")

    def of_service(self, given: str | None) -> None:
        _require(given, self.base_url, "the host of this service's own address")


def _require(given: str | None, url: str, whose: str) -> None:
    """The message does not contain the right host, so that the caller has to look it up."""
    host = urlsplit(url).hostname
    if given is None or given.strip().strip("[]").lower() != host:
        raise Invalid(
            FieldError(
                FIELD,
                "host_not_confirmed",
                f"Nothing was done: this cannot be undone, so confirm it with {whose}.",
            )
        )
