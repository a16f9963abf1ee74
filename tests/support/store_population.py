"""An account with at least one row in every table."""

from dataclasses import dataclass

from cuepost.domain.access import Account, ApiKey
from cuepost.domain.alert import Alert, AlertKind, AlertMail
from cuepost.domain.bulk_retry import BulkRetry
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.event import Event
from cuepost.domain.inbox import Inbox
from cuepost.domain.invitation import Invitation, InvitationMail
from cuepost.domain.listener import Listener
from cuepost.domain.person import Session, SignInLink, User
from cuepost.domain.portal import PortalLink
from cuepost.domain.project import Project
from cuepost.domain.secret_reveal import SecretReveal
from cuepost.ports.moves import Move
from cuepost.ports.records import StoredReport
from cuepost.ports.store import Transaction
from tests.support.records import Records
from tests.support.store_rows import AnyStore


@dataclass(frozen=True, slots=True)
class Populated:
    account: Account
    key: ApiKey
    project: Project
    endpoint: Endpoint
    event: Event
    pending: Delivery
    ended: Delivery
    job: BulkRetry
    listener: Listener
    report: StoredReport
    user: User
    session: Session
    link: SignInLink
    invitation: Invitation
    portal_link: PortalLink
    reveal: SecretReveal
    inbox: Inbox
    idempotency_key: str = "key"


def of_account(records: Records) -> Populated:
    account = records.account()
    project = records.project(account.id, access_expires_at=records.clock.now())
    endpoint = records.endpoint(account.id)
    user = records.user(account.id)
    event = records.event(account.id, project_id=project.id)
    concerning = {
        "webhook_id": endpoint.id,
        "event_id": event.id,
        "project_id": project.id,
    }
    return Populated(
        account=account,
        key=records.key(account.id),
        project=project,
        endpoint=endpoint,
        event=event,
        pending=records.delivery(account.id, **concerning),
        ended=records.delivery(account.id, status=DeliveryStatus.FAILED, **concerning),
        job=records.bulk_retry(account.id, endpoint.id),
        listener=records.listener(account.id),
        report=records.report(),
        user=user,
        session=records.session(user),
        link=records.sign_in_link(user),
        invitation=records.invitation(account.id),
        portal_link=records.portal_link(user),
        reveal=records.secret_reveal(endpoint),
        inbox=records.inbox(account.id),
    )


async def populate(store: AnyStore, records: Records) -> Populated:
    made = of_account(records)
    async with store.transaction() as transaction:
        await transaction.accounts.add(made.account)
        await transaction.keys.add(made.key)
        await transaction.projects.add(made.project)
        await transaction.projects.replace_artifacts(
            {(made.account.id, made.project.id): [records.artifact(), records.artifact()]}
        )
        await transaction.endpoints.add(made.endpoint, records.secret())
        await transaction.moves.put(Move(made.account.id, b"digest", made.account.created_at))
        await add_people(transaction, records, made)
        await add_history(transaction, records, made)
    return made


async def add_people(transaction: Transaction, records: Records, made: Populated) -> None:
    await transaction.users.add(made.user)
    await transaction.sessions.add(made.session)
    await transaction.sign_in_links.add(made.link)
    await transaction.invitations.add(made.invitation)
    await transaction.invitations.add_mail(
        InvitationMail(
            made.account.id,
            made.invitation.id,
            b"sealed",
            made.invitation.created_at,
            made.invitation.expires_at,
        )
    )
    await transaction.portal_links.add(made.portal_link)
    await transaction.secret_reveals.add(made.reveal)
    await transaction.inboxes.add(made.inbox)
    which = (made.account.id, made.endpoint.id, AlertKind.FAILING, records.clock.now())
    await transaction.alerts.open(Alert(*which))
    await transaction.alerts.add_mails([AlertMail(*which, 1, made.user.id, made.user.created_at)])
    await transaction.inboxes.keep(records.inbox_message(made.account.id), 100)


async def add_history(transaction: Transaction, records: Records, made: Populated) -> None:
    account_id, now = made.account.id, records.clock.now()
    await transaction.events.add([made.event])
    await transaction.deliveries.add([made.pending, made.ended])
    await transaction.attempts.add([records.attempt(made.ended)])
    await transaction.bulk_retries.add(made.job)
    # The event was there before, and so it is noted.
    await transaction.listeners.add(made.listener)
    await transaction.reports.add({(account_id, made.report.answer.report_id): made.report}, now)
    await transaction.idempotency.claim(
        account_id, made.key.id, made.idempotency_key, b"print", now
    )
    await transaction.idempotency.remember(account_id, made.key.id, made.idempotency_key, b"sealed")
    await transaction.audit.add(records.audit_entry(account_id))
