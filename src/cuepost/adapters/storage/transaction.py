"""A transaction: all records over one session. Each engine has its own classes for a few."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

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

R_co = TypeVar("R_co", covariant=True)


class records(Generic[R_co]):  # noqa: N801  # read like a function
    """Records of that kind, made with the session at their first use in a transaction.

    `cached_property` of Python 3.11 takes a lock.
    """

    def __init__(self, kind: Callable[[Any], R_co]) -> None:
        self._kind = kind

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, transaction: "RecordsTransaction", _: type) -> R_co:
        made = transaction.__dict__[self._name] = self._kind(transaction.session)
        return made


@dataclass(eq=False, repr=False)
class RecordsTransaction:
    session: StoreSession
    queue: ClassVar[records[QueueRecords]]
    outcomes: ClassVar[records[OutcomeRecords]]
    retention: ClassVar[records[RetentionRecords]]
    moves: ClassVar[records[AccountMoveRecords]]
    accounts = records(AccountRecords)
    keys = records(KeyRecords)
    users = records(UserRecords)
    sessions = records(SessionRecords)
    sign_in_links = records(SignInLinkRecords)
    invitations = records(InvitationRecords)
    portal_links = records(PortalLinkRecords)
    sign_in_attempts = records(SignInAttemptRecords)
    secret_reveals = records(SecretRevealRecords)
    inboxes = records(InboxRecords)
    projects = records(ProjectRecords)
    endpoints = records(EndpointRecords)
    reports = records(ReportRecords)
    events = records(EventRecords)
    deliveries = records(DeliveryRecords)
    attempts = records(AttemptRecords)
    counts = records(CountRecords)
    alerts = records(AlertRecords)
    bulk_retries = records(BulkRetryRecords)
    listeners = records(ListenerRecords)
    idempotency = records(IdempotencyRecords)
    audit = records(AuditRecords)
    backlog = records(BacklogRecords)
    service_state = records(ServiceStateRecords)
    sealed = records(SealedRecords)
