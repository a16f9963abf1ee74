"""The test inbox: stores a delivery, verifies its signature, and returns the chosen answer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from uuid import UUID

from cuepost.application.perform import require_live
from cuepost.domain.access import Caller, Scope
from cuepost.domain.endpoint import StoredSecret
from cuepost.domain.errors import NotFound
from cuepost.domain.inbox import (
    KEPT_MESSAGES,
    TOKEN_BYTES,
    Inbox,
    InboxAnswer,
    InboxMessage,
    compose_token,
)
from cuepost.domain.signing import SigningSecret, signature
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, Entropy, IdSource, SecretBox

Headers = tuple[tuple[str, str], ...]
_EVERY_ENDPOINT = Page(limit=1_000)


@dataclass(frozen=True, slots=True)
class ReceiveInInbox:
    clock: Clock
    ids: IdSource
    entropy: Entropy
    box: SecretBox
    address: Callable[[str], str]

    async def mine(self, transaction: Transaction, caller: Caller) -> Inbox:
        return await self.of_account(transaction, caller.require_webhooks(Scope.WEBHOOKS_MANAGE))

    async def of_account(self, transaction: Transaction, account_id: UUID) -> Inbox:
        """The account's inbox, which is created when it is first read."""
        found = await transaction.inboxes.get(account_id)
        if found is None:
            token = compose_token(self.entropy(TOKEN_BYTES))
            await transaction.inboxes.add(
                Inbox(account_id, token, InboxAnswer.OK, self.clock.now())
            )
            found = await transaction.inboxes.get(account_id)
            assert found is not None
        return found

    async def opened(self, transaction: Transaction, caller: Caller, token: str) -> Inbox:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        found = await transaction.inboxes.get(account_id)
        if found is None or found.token != token:
            raise NotFound
        return found

    async def messages(
        self, transaction: Transaction, caller: Caller, limit: int
    ) -> list[InboxMessage]:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        return await transaction.inboxes.messages(account_id, Page(limit))

    async def answer_with(
        self, transaction: Transaction, caller: Caller, token: str, answer: InboxAnswer
    ) -> None:
        caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        inbox = await self.opened(transaction, caller, token)
        await transaction.inboxes.set_answer(inbox.account_id, answer)

    async def clear(self, transaction: Transaction, caller: Caller, token: str) -> None:
        caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        inbox = await self.opened(transaction, caller, token)
        await transaction.inboxes.clear(inbox.account_id)

    async def take_in(
        self, transaction: Transaction, token: str, headers: Headers, body: bytes
    ) -> InboxAnswer | None:
        """Store a request and return the answer; None if there is no such inbox."""
        inbox = await transaction.inboxes.by_token(token)
        if inbox is None:
            return None
        await require_live(transaction, inbox.account_id)
        now = self.clock.now()
        signers = await self._signers(transaction, inbox, dict(headers), body)
        message = InboxMessage(
            account_id=inbox.account_id,
            id=self.ids(now),
            received_at=now,
            headers=headers,
            body=body,
            verified_with=tuple(signers),
            answer=inbox.answer,
        )
        await transaction.inboxes.keep(message, KEPT_MESSAGES)
        return inbox.answer

    async def _signers(
        self, transaction: Transaction, inbox: Inbox, headers: Mapping[str, str], body: bytes
    ) -> list[str]:
        """The hints of the secrets that signed, of the endpoints with this inbox's URL."""
        here = self.address(inbox.token)
        endpoints = await transaction.endpoints.page(inbox.account_id, _EVERY_ENDPOINT)
        mine = [endpoint.id for endpoint in endpoints if endpoint.url == here]
        secrets = await transaction.endpoints.secrets(inbox.account_id, mine) if mine else {}
        sent = headers.get("webhook-signature", "").split()
        return [
            hint
            for hint, expected in self._expected(secrets, headers, body)
            if any(compare_digest(expected, each) for each in sent)
        ]

    def _expected(
        self,
        secrets: Mapping[UUID, Sequence[StoredSecret]],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Iterator[tuple[str, str]]:
        event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        for webhook_id, stored in secrets.items():
            for each in sorted(stored, key=lambda secret: -secret.version):
                secret = SigningSecret(self.box.open(each.sealed, webhook_id.bytes))
                if timestamp.isdecimal():
                    yield each.hint, signature(secret, event_id, int(timestamp), body)
