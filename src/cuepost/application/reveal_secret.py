"""One-time links that show a new secret, for interfaces that must not return it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuepost.application.audit_trail import AuditTrail
from cuepost.application.manage_webhooks import EndpointWithSecret
from cuepost.domain.access import Caller, Scope
from cuepost.domain.audit import Action
from cuepost.domain.errors import NotFound
from cuepost.domain.person import OPAQUE_TOKEN_BYTES, compose_opaque_token, opaque_token_digest
from cuepost.domain.secret_reveal import REVEAL_LIFE, SecretReveal
from cuepost.domain.signing import SigningSecret
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, Entropy, IdSource, SecretBox


@dataclass(frozen=True, slots=True)
class RevealOffer:
    """The link to the secret and its expiry; opening it requires signing in to the account."""

    url: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"RevealOffer(expires_at={self.expires_at})"


@dataclass(frozen=True, slots=True)
class Revealed:
    webhook_id: UUID
    secret: SigningSecret


@dataclass(frozen=True, slots=True)
class RevealSecret:
    clock: Clock
    ids: IdSource
    entropy: Entropy
    box: SecretBox
    audit: AuditTrail
    address: Callable[[str], str]

    async def offer(
        self, transaction: Transaction, caller: Caller, with_secret: EndpointWithSecret
    ) -> RevealOffer:
        """Called in the transaction that made the secret, which is stored sealed for 15 minutes."""
        account_id = caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        now, token = self.clock.now(), compose_opaque_token(self.entropy(OPAQUE_TOKEN_BYTES))
        reveal_id = self.ids(now)
        reveal = SecretReveal(
            account_id=account_id,
            id=reveal_id,
            webhook_id=with_secret.view.endpoint.id,
            digest=opaque_token_digest(token),
            sealed=self.box.seal(with_secret.secret.key, reveal_id.bytes),
            expires_at=now + REVEAL_LIFE,
        )
        await transaction.secret_reveals.add(reveal)
        return RevealOffer(self.address(token), reveal.expires_at)

    async def waiting(self, transaction: Transaction, caller: Caller, token: str) -> SecretReveal:
        """Does not use the link up, because browsers and chat programs prefetch links."""
        account_id = caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        found = await transaction.secret_reveals.find(
            account_id, opaque_token_digest(token), self.clock.now()
        )
        if found is None:
            raise NotFound("This secret was already shown, or its link has expired.")
        return found

    async def show(self, transaction: Transaction, caller: Caller, token: str) -> Revealed:
        reveal = await self.waiting(transaction, caller, token)
        if not await transaction.secret_reveals.take(reveal.account_id, reveal.id):
            raise NotFound("This secret was already shown.")
        secret = SigningSecret(self.box.open(reveal.sealed, reveal.id.bytes))
        await self.audit.note(
            transaction, caller, Action.SECRET_REVEALED, reveal.account_id, reveal.webhook_id
        )
        return Revealed(reveal.webhook_id, secret)
