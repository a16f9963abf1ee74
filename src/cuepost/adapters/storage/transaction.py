"""A transaction: all records over one session. Each engine has its own classes for a few."""

from functools import cached_property

from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.records.access import AccountRecords, KeyRecords
from cuepost.adapters.storage.records.alerts import AlertRecords
from cuepost.adapters.storage.records.attempts import AttemptRecords
from cuepost.adapters.storage.records.audit import AuditRecords
from cuepost.adapters.storage.records.backlog import BacklogRecords
from cuepost.adapters.storage.records.bulk_retries import BulkRetryRecords
from cuepost.adapters.storage.records.counts import CountRecords
from cuepost.adapters.storage.records.deliveries import DeliveryRecords
from cuepost.adapters.storage.records.endpoints import EndpointRecords
from cuepost.adapters.storage.records.events import EventRecords
from cuepost.adapters.storage.records.guards import IdempotencyRecords, ReportRecords
from cuepost.adapters.storage.records.inboxes import InboxRecords
from cuepost.adapters.storage.records.invitations import InvitationRecords
from cuepost.adapters.storage.records.listeners import ListenerRecords
from cuepost.adapters.storage.records.moves import AccountMoveRecords
from cuepost.adapters.storage.records.outcomes import OutcomeRecords
from cuepost.adapters.storage.records.people import (
    SecretRevealRecords,
    SessionRecords,
    SignInAttemptRecords,
    SignInLinkRecords,
)
from cuepost.adapters.storage.records.portal_links import PortalLinkRecords
from cuepost.adapters.storage.records.projects import ProjectRecords
from cuepost.adapters.storage.records.queue import QueueRecords
from cuepost.adapters.storage.records.retention import RetentionRecords
from cuepost.adapters.storage.records.sealed import SealedRecords
from cuepost.adapters.storage.records.service_state import ServiceStateRecords
from cuepost.adapters.storage.records.users import UserRecords
from cuepost.adapters.storage.session import StoreSession


class RecordsTransaction:
    _queue: type[QueueRecords]
    _outcomes: type[OutcomeRecords]
    _retention: type[RetentionRecords]
    _moves: type[AccountMoveRecords]

    def __init__(self, session: StoreSession, outbox: Outbox) -> None:
        self._session = session
        self._outbox = outbox

    @cached_property
    def accounts(self) -> AccountRecords:
        return AccountRecords(self._session)

    @cached_property
    def keys(self) -> KeyRecords:
        return KeyRecords(self._session)

    @cached_property
    def users(self) -> UserRecords:
        return UserRecords(self._session)

    @cached_property
    def sessions(self) -> SessionRecords:
        return SessionRecords(self._session)

    @cached_property
    def sign_in_links(self) -> SignInLinkRecords:
        return SignInLinkRecords(self._session)

    @cached_property
    def invitations(self) -> InvitationRecords:
        return InvitationRecords(self._session)

    @cached_property
    def portal_links(self) -> PortalLinkRecords:
        return PortalLinkRecords(self._session)

    @cached_property
    def sign_in_attempts(self) -> SignInAttemptRecords:
        return SignInAttemptRecords(self._session)

    @cached_property
    def secret_reveals(self) -> SecretRevealRecords:
        return SecretRevealRecords(self._session)

    @cached_property
    def inboxes(self) -> InboxRecords:
        return InboxRecords(self._session)

    @cached_property
    def projects(self) -> ProjectRecords:
        return ProjectRecords(self._session)

    @cached_property
    def endpoints(self) -> EndpointRecords:
        return EndpointRecords(self._session)

    @cached_property
    def reports(self) -> ReportRecords:
        return ReportRecords(self._session)

    @cached_property
    def events(self) -> EventRecords:
        return EventRecords(self._session, self._outbox)

    @cached_property
    def deliveries(self) -> DeliveryRecords:
        return DeliveryRecords(self._session, self._outbox)

    @cached_property
    def attempts(self) -> AttemptRecords:
        return AttemptRecords(self._session)

    @cached_property
    def counts(self) -> CountRecords:
        return CountRecords(self._session)

    @cached_property
    def alerts(self) -> AlertRecords:
        return AlertRecords(self._session)

    @cached_property
    def queue(self) -> QueueRecords:
        return self._queue(self._session)

    @cached_property
    def outcomes(self) -> OutcomeRecords:
        return self._outcomes(self._session)

    @cached_property
    def bulk_retries(self) -> BulkRetryRecords:
        return BulkRetryRecords(self._session)

    @cached_property
    def listeners(self) -> ListenerRecords:
        return ListenerRecords(self._session)

    @cached_property
    def idempotency(self) -> IdempotencyRecords:
        return IdempotencyRecords(self._session)

    @cached_property
    def audit(self) -> AuditRecords:
        return AuditRecords(self._session)

    @cached_property
    def retention(self) -> RetentionRecords:
        return self._retention(self._session)

    @cached_property
    def backlog(self) -> BacklogRecords:
        return BacklogRecords(self._session)

    @cached_property
    def service_state(self) -> ServiceStateRecords:
        return ServiceStateRecords(self._session)

    @cached_property
    def sealed(self) -> SealedRecords:
        return SealedRecords(self._session)

    @cached_property
    def moves(self) -> AccountMoveRecords:
        return self._moves(self._session)
