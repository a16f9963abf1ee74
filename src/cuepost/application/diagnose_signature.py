"""The signature doctor with the endpoint's own secrets, which are used here and never shown."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cuepost.domain.access import Caller, Scope
from cuepost.domain.delivery import Delivery
from cuepost.domain.endpoint import StoredSecret
from cuepost.domain.errors import FieldError, Invalid, NotFound
from cuepost.domain.signing import SigningSecret
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, SecretBox

Headers = Mapping[str, str] | str


class SignatureVerdict(Protocol):
    @property
    def is_valid(self) -> bool: ...
    @property
    def cause(self) -> str: ...
    @property
    def sentence(self) -> str: ...
    @property
    def remedy(self) -> str: ...


class SignatureDoctor(Protocol):
    """`diagnose` of the receiver kit."""

    def __call__(
        self,
        headers: Headers,
        body: bytes | str,
        secrets: Iterable[str],
        *,
        now: float | None = None,
        retired: Iterable[str] = (),
        computed: str | None = None,
    ) -> SignatureVerdict: ...


def kit_doctor() -> SignatureDoctor:
    """Imported when it is first used, because nothing else in the service needs the kit."""
    from cuepost_receiver.doctor import diagnose  # noqa: PLC0415  # see above

    return diagnose


@dataclass(frozen=True, slots=True)
class SignatureQuestion:
    """What a receiver got; fields that are None are taken from the delivery as it was sent.

    `secret` is the one that the receiver uses; if it is None, the endpoint's own are used.
    """

    webhook_id: UUID
    delivery_id: UUID | None = None
    headers: Headers | None = None
    body: str | None = None
    secret: str | None = None
    computed: str | None = None
    received_at: datetime | None = None

    def __repr__(self) -> str:
        return f"SignatureQuestion(webhook_id={self.webhook_id})"


@dataclass(frozen=True, slots=True)
class _Sent:
    headers: Headers
    body: bytes
    at: datetime


@dataclass(frozen=True, slots=True)
class DiagnoseSignature:
    clock: Clock
    box: SecretBox
    doctor: Callable[[], SignatureDoctor]

    async def diagnose(
        self, transaction: Transaction, caller: Caller, question: SignatureQuestion
    ) -> SignatureVerdict:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        webhook_id = question.webhook_id
        if await transaction.endpoints.get(account_id, webhook_id) is None:
            raise NotFound
        sent = await self._sent(transaction, account_id, question)
        stored = (await transaction.endpoints.secrets(account_id, [webhook_id]))[webhook_id]
        now = self.clock.now()
        live = self._opened(webhook_id, [each for each in stored if each.is_live(now)])
        retired = self._opened(webhook_id, [each for each in stored if not each.is_live(now)])
        return self.doctor()(
            question.headers or (sent.headers if sent else ""),
            sent.body if question.body is None and sent else question.body or "",
            [question.secret] if question.secret else live,
            now=(question.received_at or (sent.at if sent else now)).timestamp(),
            retired=[*live[1:], *retired] if question.secret else retired,
            computed=question.computed,
        )

    def _opened(self, webhook_id: UUID, stored: Iterable[StoredSecret]) -> list[str]:
        newest_first = sorted(stored, key=lambda secret: secret.version, reverse=True)
        return [
            SigningSecret(self.box.open(each.sealed, webhook_id.bytes)).reveal()
            for each in newest_first
        ]

    async def _sent(
        self, transaction: Transaction, account_id: UUID, question: SignatureQuestion
    ) -> _Sent | None:
        if question.delivery_id is None:
            _require_complete(question)
            return None
        delivery = await transaction.deliveries.get(account_id, question.delivery_id)
        if delivery is None or delivery.webhook_id != question.webhook_id:
            raise NotFound
        return await _as_sent(transaction, delivery)


async def _as_sent(transaction: Transaction, delivery: Delivery) -> _Sent:
    event = await transaction.events.get(delivery.account_id, delivery.event_id)
    found = await transaction.attempts.last_of(delivery.account_id, [delivery.id])
    last = found.get(delivery.id)
    if event is None:
        raise NotFound
    if last is None or not last.request_headers:
        raise Invalid(
            FieldError(
                "delivery_id",
                "not_sent_yet",
                "This delivery has not been sent, so it is not signed.",
            )
        )
    return _Sent(dict(last.request_headers), event.body, last.started_at)


def _require_complete(question: SignatureQuestion) -> None:
    missing = [
        FieldError(name, "missing_field", "Give this, or the delivery that it belongs to.")
        for name, value in (("headers", question.headers), ("body", question.body))
        if value is None
    ]
    if missing:
        raise Invalid(*missing)
