"""An example of each request and response body, built from the wire models."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from cuepost.domain.access import Role, Scope
from cuepost.domain.audit import Action
from cuepost.domain.bulk_retry import BulkRetryState
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.event_catalog import BY_NAME, DEFAULT_SUBSCRIPTION
from cuepost.domain.health import HealthState
from cuepost.domain.project import Origin, ProjectKind, ProjectStatus, Stage
from cuepost.interfaces.rest.milestones import (
    MilestoneReport,
    MilestoneResult,
    MilestoneResults,
    ReportedArtifact,
    ReportMilestones,
)
from cuepost.interfaces.wire_models.accounts import (
    Account,
    AccountList,
    AccountStanding,
    ApiKey,
    ApiKeyList,
    CreateAccount,
    CreateApiKey,
    CreatedApiKey,
    UpdateAccount,
    WebhooksAccess,
)
from cuepost.interfaces.wire_models.audit import AuditEntry, AuditList
from cuepost.interfaces.wire_models.bulk_retries import BulkRetry, StartBulkRetry
from cuepost.interfaces.wire_models.deliveries import Delivery, DeliveryList
from cuepost.interfaces.wire_models.events import Event, EventDelivery, EventList
from cuepost.interfaces.wire_models.listeners import (
    Acknowledge,
    Listener,
    ListenerList,
    RegisterListener,
    StreamedEvent,
    StreamedEvents,
)
from cuepost.interfaces.wire_models.members import (
    AddMember,
    ChangeMember,
    CreatedInvitation,
    Invitation,
    InvitationList,
    Invite,
    Member,
    MemberList,
    UpdateMember,
)
from cuepost.interfaces.wire_models.portal import CreatedPortalLink, CreatePortalLink
from cuepost.interfaces.wire_models.projects import (
    CreateProject,
    Project,
    ProjectList,
    ProjectResult,
    ResultLink,
    UpdateProject,
)
from cuepost.interfaces.wire_models.webhooks import (
    CreatedWebhook,
    CreateWebhook,
    RotatedSecret,
    UpdateWebhook,
    Webhook,
    WebhookHealth,
    WebhookList,
)

_NOON, _LATER = "2026-01-02T03:04:05.678Z", "2026-01-03T03:04:05.678Z"
_HINT = "whsec_…eYW0"
# Not a secret: base64 of the repeated word "example".
_SECRET = "whsec_ZXhhbXBsZWV4YW1wbGVleGFtcGxlZXhhbXBsZWV4YW0="
_URL = "https://hooks.example.com/cuepost"
_WEBHOOK, _PROJECT, _EVENT, _DELIVERY, _RETRY, _ENTRY, _LISTENER = (
    UUID(f"0198c0de-5a3b-7d21-9c4e-00000000000{place}") for place in (1, 2, 3, 4, 5, 6, 8)
)
_ACCOUNT, _KEY = (UUID(f"0198c0de-5a3b-7d21-9c4e-0000000000{place}") for place in ("0a", "0b"))
_MEMBER, _INVITATION = (
    UUID(f"0198c0de-5a3b-7d21-9c4e-0000000000{place}") for place in ("0c", "0d")
)
_PORTAL_LINK = UUID("0198c0de-5a3b-7d21-9c4e-00000000000e")
_PORTAL = "https://cuepost.example.com/portal/example"
_JOIN = "https://cuepost.example.com/join/example"
# Not a secret either.
_TOKEN = f"cpk_{_KEY.hex}ZXhhbXBsZWV4YW1wbGVleGFtcGxlZXhhbXBsZWV4YW0"
_COMPLETED = BY_NAME["project.completed"]

_webhook = Webhook(
    id=_WEBHOOK,
    url=_URL,
    events=list(DEFAULT_SUBSCRIPTION),
    description="Production",
    enabled=True,
    secret_hint=_HINT,
    previous_secret_expires_at=None,
    created_at=_NOON,
    updated_at=_NOON,
    health=WebhookHealth(HealthState.HEALTHY, _NOON, _NOON, 0, 0),
)
_delivery = Delivery(
    id=_DELIVERY,
    webhook_id=_WEBHOOK,
    event_id=_EVENT,
    event_type=_COMPLETED.name,
    project_id=_PROJECT,
    status=DeliveryStatus.PENDING,
    reason=None,
    attempt_count=0,
    budget=1,
    next_attempt_at=_NOON,
    created_at=_NOON,
    finished_at=None,
    delivered_at=None,
    last_attempt=None,
)
_project = Project(
    id=_PROJECT,
    name="Trailer",
    kind=ProjectKind.VIDEO,
    origin=Origin.API,
    status=ProjectStatus.COMPLETED,
    stage=Stage.EXPORT,
    access_expires_at=None,
    created_at=_NOON,
    updated_at=_LATER,
)
_link = ResultLink(
    kind="video",
    name="trailer.mp4",
    url="https://cuepost.example.com/media/AQGYwN5aO30h…",
    content_type="video/mp4",
    size_bytes=7340032,
    expires_at=_LATER,
)
_event = Event(
    id=_EVENT,
    type=_COMPLETED.name,
    created_at=_NOON,
    occurred_at=_NOON,
    project_id=_PROJECT,
    reason=None,
    body=msgspec.Raw(msgspec.json.encode(_COMPLETED.sample())),
    deliveries=[EventDelivery(_WEBHOOK, _DELIVERY, DeliveryStatus.DELIVERED, None)],
)
_entry = AuditEntry(
    id=_ENTRY,
    action=Action.WEBHOOK_CREATED,
    actor="key:0198c0de-5a3b-7d21-9c4e-000000000007",
    actor_name="Production",
    interface="rest",
    address="203.0.113.7",
    subject=str(_WEBHOOK),
    details={"url": _URL},
    at=_NOON,
)
_listener = Listener(
    id=_LISTENER,
    name="laptop",
    events=list(DEFAULT_SUBSCRIPTION),
    acknowledged=41,
    created_at=_NOON,
    served_at=_LATER,
)
_streamed = StreamedEvent(
    position=42,
    id=_EVENT,
    type=_COMPLETED.name,
    created_at=_NOON,
    body=msgspec.json.encode(_COMPLETED.sample()).decode(),
)
_member = Member(_MEMBER, "user_7", "grace@example.com", Role.DEVELOPER, _NOON, True)
_invitation = Invitation(_INVITATION, "ada@example.com", Role.VIEWER, _NOON, _LATER, True)
_report = MilestoneReport(
    report_id="render-1842/completed",
    project_id=_PROJECT,
    status=ProjectStatus.COMPLETED,
    artifacts=[
        ReportedArtifact("video", "trailer.mp4", "exports/1842/trailer.mp4", "video/mp4", 7340032)
    ],
)

_account = Account(
    _ACCOUNT, "cust_42", "Harbour Films", WebhooksAccess.OPEN, AccountStanding.LIVE, _NOON
)
_key = ApiKey(
    id=_KEY,
    account_id=_ACCOUNT,
    name="Server",
    scopes=[Scope.PROJECTS_READ, Scope.PROJECTS_WRITE],
    created_at=_NOON,
    expires_at=None,
    revoked_at=None,
    last_used_at=None,
)
_EXAMPLES: tuple[msgspec.Struct, ...] = (
    CreateWebhook(url=_URL, events=list(DEFAULT_SUBSCRIPTION), description="Production"),
    UpdateWebhook(enabled=False),
    _webhook,
    WebhookList([_webhook], None),
    CreatedWebhook(secret=_SECRET, **msgspec.structs.asdict(_webhook)),
    RotatedSecret(_SECRET, _HINT, _LATER),
    _delivery,
    DeliveryList([_delivery], None),
    _event,
    EventList([_event], None),
    AuditList([_entry], None),
    StartBulkRetry(since=datetime.fromisoformat(_NOON)),
    BulkRetry(
        id=_RETRY,
        status=BulkRetryState.RUNNING,
        count=12,
        retried=5,
        skipped=0,
        since=_NOON,
        until=_LATER,
        statuses=[DeliveryStatus.FAILED, DeliveryStatus.CANCELLED],
        include_delivered=False,
        created_at=_LATER,
        finished_at=None,
        dry_run=False,
    ),
    RegisterListener(name="laptop", events=list(DEFAULT_SUBSCRIPTION)),
    Acknowledge(up_to=1),
    _listener,
    ListenerList([_listener], None),
    StreamedEvents([_streamed]),
    ChangeMember(Role.DEVELOPER, alerts_by_email=False),
    Invite(Role.VIEWER, "ada@example.com"),
    _member,
    MemberList([_member], None),
    InvitationList([_invitation], None),
    CreatedInvitation(url=_JOIN, **msgspec.structs.asdict(_invitation)),
    AddMember(Role.DEVELOPER, external_id="user_8"),
    UpdateMember(role=Role.VIEWER),
    CreatePortalLink(member="external:user_7", role=Role.DEVELOPER),
    CreatedPortalLink(_PORTAL_LINK, _MEMBER, Role.DEVELOPER, _PORTAL, _NOON, _LATER),
    CreateProject(name="Trailer"),
    UpdateProject(name="Trailer, second cut"),
    _project,
    ProjectList([_project], None),
    ProjectResult(_PROJECT, ProjectStatus.COMPLETED, Stage.EXPORT, [_link], _NOON, None),
    CreateAccount(name="Harbour Films", external_id="cust_42"),
    UpdateAccount(name="Harbour Films Ltd"),
    _account,
    AccountList([_account], None),
    CreateApiKey(name="Server", scopes=["projects:read", "projects:write"]),
    _key,
    ApiKeyList([_key], None),
    CreatedApiKey(token=_TOKEN, **msgspec.structs.asdict(_key)),
    ReportMilestones([_report]),
    MilestoneResults(
        [
            MilestoneResult(
                report_id=_report.report_id, accepted=True, event_id=_EVENT, notified=True
            )
        ]
    ),
)
_BY_MODEL = {
    type(example): msgspec.json.decode(msgspec.json.encode(example)) for example in _EXAMPLES
}


def example_of(model: type[Any]) -> Any:
    return _BY_MODEL.get(model)
