"""The whole application: every use case, as the doors get it."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from cuepost.application.access import Authenticate, ManageAccess
from cuepost.application.audit_trail import AuditTrail
from cuepost.application.browse_history import BrowseHistory
from cuepost.application.confirm_host import ConfirmHost
from cuepost.application.diagnose_signature import DiagnoseSignature, kit_doctor
from cuepost.application.download import FollowLink
from cuepost.application.erase_account import EraseAccount
from cuepost.application.explain_delivery import ExplainDelivery
from cuepost.application.manage_projects import ManageProjects, StopExpiredProjects
from cuepost.application.manage_webhooks import ManageWebhooks
from cuepost.application.milestone_book import Bookkeeper
from cuepost.application.perform import Perform
from cuepost.application.project_result import FetchResult
from cuepost.application.rate_limit import RateLimit
from cuepost.application.redeliver import Redeliver
from cuepost.application.report_milestones import ReportMilestones
from cuepost.application.store_media import StoreMedia
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.ports.media import NO_MEDIA, Media
from cuepost.ports.runtime import Clock, Entropy, IdSource, SecretBox
from cuepost.ports.store import Store


@dataclass(frozen=True, slots=True)
class Rules:
    """What an operator can set about the use cases."""

    base_url: str
    policy: EgressPolicy
    rotation_overlap: timedelta = timedelta(hours=24)
    endpoint_limit: int = 20
    requests_per_minute: int = 6_000
    service_requests_per_minute: int = 600_000
    link_ttl: timedelta = timedelta(minutes=15)

    def result_url(self, project_id: UUID) -> str:
        return f"{self.base_url}/v1/projects/{project_id}/result"


@dataclass(frozen=True, slots=True)
class Ambient:
    """Time, ids, chance and the box for secrets."""

    clock: Clock
    ids: IdSource
    entropy: Entropy
    box: SecretBox


@dataclass(frozen=True, slots=True)
class Service:
    """`downloads` is None where somebody else answers to the links."""

    perform: Perform
    authenticate: Authenticate
    rate_limit: RateLimit
    access: ManageAccess
    erasing: EraseAccount
    projects: ManageProjects
    results: FetchResult
    downloads: FollowLink | None
    media: StoreMedia
    milestones: ReportMilestones
    webhooks: ManageWebhooks
    history: BrowseHistory
    redeliver: Redeliver
    explain: ExplainDelivery
    signatures: DiagnoseSignature
    confirm_host: ConfirmHost
    expiry: StopExpiredProjects


def assemble(store: Store, ambient: Ambient, rules: Rules, media: Media = NO_MEDIA) -> Service:
    clock, ids, entropy = ambient.clock, ambient.ids, ambient.entropy
    perform = Perform(store, clock, ambient.box)
    audit = AuditTrail(clock, ids)
    bookkeeper = Bookkeeper(clock, ids, rules.result_url)
    return Service(
        perform=perform,
        authenticate=Authenticate(perform, clock),
        rate_limit=RateLimit(clock, rules.requests_per_minute, rules.service_requests_per_minute),
        access=ManageAccess(clock, ids, entropy, audit),
        erasing=EraseAccount(perform, media.shelf),
        projects=ManageProjects(clock, ids, bookkeeper, audit),
        results=FetchResult(clock, media.links, rules.link_ttl),
        downloads=FollowLink(perform, clock, media.folder) if media.folder else None,
        media=StoreMedia(perform, clock, ids, media.shelf),
        milestones=ReportMilestones(perform, bookkeeper),
        webhooks=ManageWebhooks(
            clock,
            ids,
            entropy,
            ambient.box,
            audit,
            rules.policy,
            rules.rotation_overlap,
            rules.endpoint_limit,
        ),
        history=BrowseHistory(),
        redeliver=Redeliver(clock, ids, audit),
        explain=ExplainDelivery(clock),
        signatures=DiagnoseSignature(clock, ambient.box, kit_doctor),
        confirm_host=ConfirmHost(rules.base_url),
        expiry=StopExpiredProjects(perform, clock),
    )
