"""All use cases, as the interfaces get them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypedDict
from uuid import UUID

from cuepost.application.access import ManageAccess
from cuepost.application.account_members import AccountMembers
from cuepost.application.admission import Authenticate, RateLimit
from cuepost.application.alerts import FollowAlerts, ShowAlerts
from cuepost.application.audit_trail import AuditTrail
from cuepost.application.browse_history import BrowseHistory
from cuepost.application.check_receiver import CheckReceiver
from cuepost.application.confirm_host import ConfirmHost
from cuepost.application.delivery_figures import DeliveryFigures
from cuepost.application.diagnose_signature import DiagnoseSignature, kit_doctor
from cuepost.application.download import FollowLink
from cuepost.application.erase_account import EraseAccount
from cuepost.application.explain_delivery import ExplainDelivery
from cuepost.application.follow_events import FollowEvents
from cuepost.application.join_account import JoinAccount
from cuepost.application.mail_outbox import AlertOutbox, InvitationOutbox, SendMails
from cuepost.application.manage_accounts import ManageAccounts
from cuepost.application.manage_keys import ManageKeys
from cuepost.application.manage_members import ManageMembers
from cuepost.application.manage_projects import ManageProjects, StopExpiredProjects
from cuepost.application.manage_webhooks import ManageWebhooks
from cuepost.application.milestone_batch import MilestoneBatches
from cuepost.application.move_account import MoveAccount
from cuepost.application.perform import Perform
from cuepost.application.portal import Portal
from cuepost.application.project_result import FetchResult
from cuepost.application.receive_in_inbox import ReceiveInInbox
from cuepost.application.redeliver import Redeliver
from cuepost.application.rehearse import Rehearse
from cuepost.application.rekey import Rekey
from cuepost.application.report_milestones import ReportMilestones
from cuepost.application.retry_after import retry_after
from cuepost.application.reveal_secret import RevealSecret
from cuepost.application.sign_in import SignIn
from cuepost.application.sign_in_limits import SignInLimits
from cuepost.application.store_media import StoreMedia
from cuepost.application.watch_service import WatchService
from cuepost.domain.alert import AlertMail
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.invitation import InvitationMail
from cuepost.domain.portal import PortalPolicy
from cuepost.ports.media import NO_MEDIA, Media
from cuepost.ports.passwords import NoPasswords, Passwords
from cuepost.ports.store import Replica, Store
from cuepost.ports.system import Clock, Entropy, IdSource, SecretBox
from cuepost.ports.transport import NoResolver, Resolver


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of the use cases; `mails` if there is a mail server."""

    base_url: str
    policy: EgressPolicy
    rotation_overlap: timedelta = timedelta(hours=24)
    endpoint_limit: int = 20
    requests_per_minute: int = 6_000
    service_requests_per_minute: int = 600_000
    link_ttl: timedelta = timedelta(minutes=15)
    retention: timedelta = timedelta(days=30)
    request_timeout: float = 10.0
    cell: str = ""
    webhooks_access: bool = False
    mails: bool = False
    portal: PortalPolicy = field(default_factory=PortalPolicy)
    password_sign_in: bool = True

    def webhook_page(self, webhook_id: UUID) -> str:
        return f"{self.base_url}/settings/webhooks/{webhook_id}"

    def reveal_url(self, token: str) -> str:
        return f"{self.base_url}/reveal/{token}"

    def sign_in_url(self, token: str) -> str:
        return f"{self.base_url}/sign-in/{token}"

    def join_url(self, token: str) -> str:
        return f"{self.base_url}/join/{token}"

    def portal_url(self, token: str) -> str:
        return f"{self.base_url}/portal/{token}"

    def inbox_url(self, token: str) -> str:
        return f"{inbox_prefix(self.base_url)}{token}"


def inbox_prefix(base_url: str) -> str:
    """The URL prefix of the service's own test inboxes, for the egress policy."""
    return f"{base_url}/inbox/"


@dataclass(frozen=True, slots=True)
class SystemPorts:
    """The ports of the system: clock, ids, randomness, encryption, passwords and DNS."""

    clock: Clock
    ids: IdSource
    entropy: Entropy
    box: SecretBox
    passwords: Passwords = field(default_factory=NoPasswords)
    resolver: Resolver = field(default_factory=NoResolver)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What the operator and the maintenance jobs do, in steps that can be repeated."""

    erasing: EraseAccount
    moving: MoveAccount
    expiry: StopExpiredProjects
    alerts: FollowAlerts
    alert_mails: SendMails[AlertMail]
    invitation_mails: SendMails[InvitationMail]
    master_keys: Rekey


@dataclass(frozen=True, slots=True)
class Service:
    """`downloads` is None if another server serves the links.

    `request_timeout` is the time limit of a request in seconds.
    """

    perform: Perform
    authenticate: Authenticate
    rate_limit: RateLimit
    access: ManageAccess
    accounts: ManageAccounts
    projects: ManageProjects
    results: FetchResult
    downloads: FollowLink | None
    media: StoreMedia
    milestones: ReportMilestones
    webhooks: ManageWebhooks
    history: BrowseHistory
    redeliver: Redeliver
    listeners: FollowEvents
    explain: ExplainDelivery
    signatures: DiagnoseSignature
    confirm_host: ConfirmHost
    reveals: RevealSecret
    sign_in: SignIn
    members: ManageMembers
    account_members: AccountMembers
    portal: Portal
    inbox: ReceiveInInbox
    rehearse: Rehearse
    receivers: CheckReceiver
    figures: DeliveryFigures
    maintenance: Maintenance
    request_timeout: float
    retry_after: Callable[..., int]
    alerts: ShowAlerts = field(default_factory=ShowAlerts)

    @property
    def keys(self) -> ManageKeys:
        return ManageKeys(self.access)

    @property
    def watching(self) -> WatchService:
        return WatchService(self.access.clock, self.accounts, self.figures)

    @property
    def joining(self) -> JoinAccount:
        return JoinAccount(self.sign_in)


class _People(TypedDict):
    sign_in: SignIn
    members: ManageMembers
    account_members: AccountMembers
    portal: Portal


def assemble(
    store: Store,
    system: SystemPorts,
    rules: Rules,
    media: Media = NO_MEDIA,
    replica: Replica | None = None,
) -> Service:
    clock, ids, entropy = system.clock, system.ids, system.entropy
    perform, audit = Perform(store, clock, system.box, replica), AuditTrail(clock, ids)
    batches, access = _milestone_batches(system, rules), _access(system, rules, audit)
    return Service(
        perform=perform,
        authenticate=Authenticate(perform, clock),
        rate_limit=RateLimit(clock, rules.requests_per_minute, rules.service_requests_per_minute),
        access=access,
        accounts=ManageAccounts(access, rules.webhooks_access),
        projects=ManageProjects(clock, ids, batches, audit),
        results=FetchResult(clock, media.links, rules.link_ttl),
        downloads=FollowLink(perform, clock, media.folder) if media.folder else None,
        media=StoreMedia(perform, clock, ids, media.files),
        milestones=ReportMilestones(perform, batches),
        webhooks=_webhooks(system, rules, audit),
        history=BrowseHistory(),
        redeliver=Redeliver(clock, ids, audit),
        listeners=FollowEvents(perform, clock, ids, audit),
        explain=ExplainDelivery(clock),
        signatures=DiagnoseSignature(clock, system.box, kit_doctor),
        confirm_host=ConfirmHost(rules.base_url),
        reveals=RevealSecret(clock, ids, entropy, system.box, audit, rules.reveal_url),
        **_people(perform, system, rules, audit),
        inbox=ReceiveInInbox(clock, ids, entropy, system.box, rules.inbox_url),
        rehearse=Rehearse(batches, audit),
        receivers=CheckReceiver(rules.policy, system.resolver),
        figures=DeliveryFigures(clock, rules.retention),
        maintenance=_maintenance(perform, system, rules, audit, media),
        request_timeout=rules.request_timeout,
        retry_after=partial(retry_after, entropy),
    )


def _milestone_batches(system: SystemPorts, rules: Rules) -> MilestoneBatches:
    return MilestoneBatches(system.clock, system.ids, rules.base_url)


def _access(system: SystemPorts, rules: Rules, audit: AuditTrail) -> ManageAccess:
    return ManageAccess(system.clock, system.ids, system.entropy, audit, rules.cell)


def _webhooks(system: SystemPorts, rules: Rules, audit: AuditTrail) -> ManageWebhooks:
    return ManageWebhooks(
        system.clock,
        system.ids,
        system.entropy,
        system.box,
        audit,
        rules.policy,
        rules.rotation_overlap,
        rules.endpoint_limit,
    )


def _members(system: SystemPorts, rules: Rules, audit: AuditTrail) -> ManageMembers:
    return ManageMembers(
        system.clock,
        system.ids,
        system.entropy,
        audit,
        rules.join_url,
        system.box,
        by_email=rules.mails,
        allows_passwords=rules.password_sign_in,
    )


def _people(perform: Perform, system: SystemPorts, rules: Rules, audit: AuditTrail) -> _People:
    sign_in = _sign_in(perform, system, rules, audit)
    members = _members(system, rules, audit)
    return _People(
        sign_in=sign_in,
        members=members,
        account_members=AccountMembers(members),
        portal=Portal(sign_in, members, rules.portal, rules.portal_url),
    )


def _sign_in(perform: Perform, system: SystemPorts, rules: Rules, audit: AuditTrail) -> SignIn:
    return SignIn(
        perform,
        system.clock,
        system.ids,
        system.entropy,
        audit,
        system.passwords,
        SignInLimits(perform, system.clock),
        rules.sign_in_url,
        rules.password_sign_in,
    )


def _maintenance(
    perform: Perform, system: SystemPorts, rules: Rules, audit: AuditTrail, media: Media
) -> Maintenance:
    clock, box = system.clock, system.box
    return Maintenance(
        erasing=EraseAccount(perform, media.files),
        moving=MoveAccount(perform, clock, system.ids, system.entropy, box, audit),
        expiry=StopExpiredProjects(perform, clock),
        alerts=FollowAlerts(perform, clock, system.ids),
        alert_mails=SendMails(perform, clock, AlertOutbox(rules.webhook_page)),
        invitation_mails=SendMails(perform, clock, InvitationOutbox(box, rules.join_url)),
        master_keys=Rekey(perform, clock, box),
    )
