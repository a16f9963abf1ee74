"""Records of every kind with every field filled in; a test names what matters to it."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from cuepost.domain.access import Account, ApiKey, Role, Scope
from cuepost.domain.artifact import Artifact
from cuepost.domain.attempt import Attempt, Outcome, Timings
from cuepost.domain.audit import Action, AuditEntry
from cuepost.domain.bulk_retry import BulkRetry, BulkRetryState
from cuepost.domain.delivery import FINAL, Delivery, DeliveryStatus, Trigger
from cuepost.domain.endpoint import Endpoint, StoredSecret
from cuepost.domain.event import Event
from cuepost.domain.inbox import Inbox, InboxAnswer, InboxMessage
from cuepost.domain.invitation import INVITATION_LIFE, Invitation
from cuepost.domain.listener import Listener, TransactionNumbers
from cuepost.domain.person import Session, SignInLink, User
from cuepost.domain.portal import ColourScheme, PortalLink, PortalTheme
from cuepost.domain.project import Origin, Project, ProjectKind, ProjectStatus, Stage
from cuepost.domain.secret_reveal import SecretReveal
from cuepost.ports.dispatch import Assignment, Target
from cuepost.ports.records import ReportAnswer, StoredReport
from cuepost.testing import SequentialIds, VirtualClock

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Records:
    clock: VirtualClock = field(default_factory=VirtualClock)
    ids: SequentialIds = field(default_factory=SequentialIds)
    _numbers: "count[int]" = field(default_factory=count)

    def id(self) -> UUID:
        return self.ids(self.clock.now())

    def account(self, **changed: Any) -> Account:
        return _made(Account(self.id(), "Straße & Söhne 🎬", True, self.clock.now()), changed)

    def key(self, account_id: UUID | None, **changed: Any) -> ApiKey:
        now = self.clock.now()
        key = ApiKey(
            id=self.id(),
            account_id=account_id,
            name="Schlüssel 🔑",
            digest=bytes(range(32)),
            scopes=frozenset({Scope.WEBHOOKS_READ, Scope.PROJECTS_WRITE}),
            created_at=now,
            expires_at=now + timedelta(days=7),
        )
        return _made(key, changed)

    def project(self, account_id: UUID, **changed: Any) -> Project:
        now = self.clock.now()
        project = Project(
            account_id=account_id,
            id=self.id(),
            name="Väter der Klamotte 📼",
            kind=ProjectKind.VIDEO,
            origin=Origin.MCP,
            status=ProjectStatus.EXPORTING,
            stage=Stage.EXPORT,
            access_expires_at=now + timedelta(days=30, milliseconds=1),
            created_at=now,
            updated_at=now + timedelta(milliseconds=2),
        )
        return _made(project, changed)

    def artifact(self, **changed: Any) -> Artifact:
        number = next(self._numbers)
        artifact = Artifact("video", f"film {number} 🎞.mp4", f"k/{number}", "video/mp4", 2**40)
        return _made(artifact, changed)

    def endpoint(self, account_id: UUID, **changed: Any) -> Endpoint:
        now = self.clock.now()
        endpoint = Endpoint(
            account_id=account_id,
            id=self.id(),
            url="https://hooks.example.com/ä",
            events=("project.completed", "project.failed"),
            description="Für die Kollegen ☎",
            enabled=True,
            created_at=now,
            updated_at=now + timedelta(milliseconds=3),
            last_delivered_at=now + timedelta(milliseconds=4),
            failing_since=now + timedelta(milliseconds=5),
            troubled_since=now + timedelta(milliseconds=6),
            last_failed_at=now + timedelta(milliseconds=7),
        )
        return _made(endpoint, changed)

    def secret(self, version: int = 1, **changed: Any) -> StoredSecret:
        secret = StoredSecret(version, b"\x00sealed\xff", "whsec_…wxyz", self.clock.now())
        return _made(secret, changed)

    def event(self, account_id: UUID, **changed: Any) -> Event:
        now = self.clock.now()
        event = Event(
            account_id=account_id,
            id=self.id(),
            type="project.completed",
            created_at=now,
            project_id=self.id(),
            occurred_at=now - timedelta(milliseconds=1),
            body='{"name":"Größe 🎥"}'.encode(),
        )
        return _made(event, changed)

    def delivery(self, account_id: UUID, **changed: Any) -> Delivery:
        """Pending, unless a final status is named."""
        now = self.clock.now()
        ended = changed.get("status") in FINAL
        delivery = Delivery(
            account_id=account_id,
            id=self.id(),
            webhook_id=self.id(),
            event_id=self.id(),
            event_type="project.completed",
            project_id=self.id(),
            trigger=Trigger.AUTOMATIC,
            status=DeliveryStatus.PENDING,
            created_at=now,
            next_attempt_at=None if ended else now,
            finished_at=now + timedelta(milliseconds=7) if ended else None,
        )
        made = _made(delivery, changed)
        if made.status is DeliveryStatus.DELIVERED:
            return replace(made, delivered_at=made.finished_at)
        return made

    def attempt(self, delivery: Delivery, **changed: Any) -> Attempt:
        attempt = Attempt(
            account_id=delivery.account_id,
            delivery_id=delivery.id,
            budget=1,
            number=1,
            trigger=Trigger.AUTOMATIC,
            started_at=self.clock.now(),
            duration_ms=12.75,
            timings=Timings(0.5, 1.25, 2.5, 8.0),
            signed_with=("whsec_…abcd", "whsec_…wxyz"),
            request_headers=(("webhook-id", str(delivery.event_id)), ("x-ä", "ü")),
            response_status=503,
            response_headers=(("retry-after", "1"), ("retry-after", "2")),
            response_body=b"\x00\xff busy",
            response_truncated=True,
            outcome=Outcome.HTTP_ERROR,
            url="https://hooks.example.com/ä",
        )
        return _made(attempt, changed)

    def assignment(self, delivery: Delivery, **changed: Any) -> Assignment:
        url = "https://hooks.example.com/ä"
        assignment = Assignment(
            account=1,
            delivery_id=delivery.id,
            lane=1,
            event_id=delivery.event_id,
            event_type=delivery.event_type,
            project_id=delivery.project_id,
            trigger=delivery.trigger,
            budget=delivery.budget,
            number=1,
            attempt_count=delivery.attempt_count,
            body=b"{}",
            target=Target(delivery.account_id, delivery.webhook_id, url, ()),
        )
        return _made(assignment, changed)

    def bulk_retry(self, account_id: UUID, webhook_id: UUID, **changed: Any) -> BulkRetry:
        now = self.clock.now()
        job = BulkRetry(
            account_id=account_id,
            id=self.id(),
            webhook_id=webhook_id,
            since=now - timedelta(days=1),
            until=now + timedelta(seconds=1),
            statuses=(DeliveryStatus.FAILED, DeliveryStatus.CANCELLED),
            state=BulkRetryState.RUNNING,
            count=3,
            created_at=now,
        )
        return _made(job, changed)

    def listener(self, account_id: UUID, **changed: Any) -> Listener:
        listener = Listener.registered(
            account_id,
            self.id(),
            f"Rechner {next(self._numbers)} 💻",
            ("project.completed", "project.failed"),
            now=self.clock.now(),
            numbers=TransactionNumbers(7, 7),
        )
        return _made(listener, changed)

    def audit_entry(self, account_id: UUID, **changed: Any) -> AuditEntry:
        entry = AuditEntry(
            account_id=account_id,
            id=self.id(),
            action=Action.WEBHOOK_CREATED,
            actor="key:1",
            interface="rest",
            address="2001:db8::1",
            subject=str(self.id()),
            details={"url": "https://hooks.example.com/ä", "note": "☎"},
            at=self.clock.now(),
            actor_name="CI 🔑",
        )
        return _made(entry, changed)

    def user(self, account_id: UUID, **changed: Any) -> User:
        number = next(self._numbers)
        user = User(
            account_id, self.id(), self.clock.now(), f"jürgen{number}@example.com", "hash 🧂"
        )
        changed = {"external_id": f"user_{number}"} | changed
        return _made(user, changed)

    def session(self, user: User, **changed: Any) -> Session:
        now = self.clock.now()
        session = Session(
            user.account_id, self.id(), user.id, self.digest(), now, now + timedelta(days=14)
        )
        return _made(session, changed)

    def sign_in_link(self, user: User, **changed: Any) -> SignInLink:
        expires_at = self.clock.now() + timedelta(hours=24)
        link = SignInLink(user.account_id, self.id(), user.id, self.digest(), expires_at)
        return _made(link, changed)

    def invitation(self, account_id: UUID, **changed: Any) -> Invitation:
        now = self.clock.now()
        invitation = Invitation(
            account_id,
            self.id(),
            self.digest(),
            Role.DEVELOPER,
            f"åsa{next(self._numbers)}@example.com",
            now,
            now + INVITATION_LIFE,
        )
        return _made(invitation, changed)

    def portal_link(self, user: User, **changed: Any) -> PortalLink:
        now = self.clock.now()
        link = PortalLink(
            user.account_id,
            self.id(),
            user.id,
            self.digest(),
            now,
            now + timedelta(minutes=10),
            now + timedelta(minutes=10),
            return_url="https://app.example.com/settings",
            theme=PortalTheme("#0b6e4f", "https://app.example.com/logo.svg", ColourScheme.DARK),
        )
        return _made(link, changed)

    def secret_reveal(self, endpoint: Endpoint, **changed: Any) -> SecretReveal:
        expires_at = self.clock.now() + timedelta(minutes=15)
        reveal = SecretReveal(
            endpoint.account_id,
            self.id(),
            endpoint.id,
            self.digest(),
            b"\x00sealed\xff",
            expires_at,
        )
        return _made(reveal, changed)

    def inbox(self, account_id: UUID, **changed: Any) -> Inbox:
        token = f"{next(self._numbers):032d}"
        return _made(Inbox(account_id, token, InboxAnswer.OK, self.clock.now()), changed)

    def inbox_message(self, account_id: UUID, **changed: Any) -> InboxMessage:
        message = InboxMessage(
            account_id=account_id,
            id=self.id(),
            received_at=self.clock.now(),
            headers=(("webhook-id", "1"), ("x-ä", "ü")),
            body=b"\x00\xff body",
            verified_with=("whsec_…abcd", "whsec_…wxyz"),
            answer=InboxAnswer.SLOW,
        )
        return _made(message, changed)

    def digest(self) -> bytes:
        return next(self._numbers).to_bytes(32, "big")

    def report(self, digest: bytes | None = b"\x00digest\xff", **changed: Any) -> StoredReport:
        answer = ReportAnswer(f"report-{next(self._numbers)} ä", True, self.id(), True, None)
        return StoredReport(_made(answer, changed), digest)


def _made(record: T, changed: dict[str, Any]) -> T:
    return replace(record, **changed)  # type: ignore[type-var]  # every record is a dataclass
