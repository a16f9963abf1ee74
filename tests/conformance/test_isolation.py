"""With another account's id nothing is found, and nothing is changed."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.tables import accounts
from cuepost.domain.access import AccountState, Role
from cuepost.domain.delivery import CancelReason
from cuepost.domain.inbox import InboxAnswer
from cuepost.domain.project import ProjectStatus
from cuepost.ports import history as history_ports
from cuepost.ports import inboxes as inbox_ports
from cuepost.ports import listeners as listener_ports
from cuepost.ports import moves as move_ports
from cuepost.ports import people as people_ports
from cuepost.ports import records as record_ports
from cuepost.ports.history import Bars, DeliveryFilter, EventFilter
from cuepost.ports.moves import Chunk
from cuepost.ports.records import EVERY_ENTRY, Page
from cuepost.ports.store import Transaction
from cuepost.testing import START
from tests.support.records import Records
from tests.support.store_population import Populated, populate
from tests.support.store_rows import OWNED_TABLES, AnyStore, introduce, rows

ALL = Page(100)
BEGINNING = START - timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Stranger:
    id: UUID
    now: datetime


Call = Callable[[Transaction, Stranger, Populated], Awaitable[Any]]

READS: dict[str, tuple[Call, object]] = {
    "Accounts.get": (lambda t, s, p: t.accounts.get(s.id), None),
    "Accounts.hold": (lambda t, s, p: t.accounts.hold(s.id), None),
    "Accounts.lock": (lambda t, s, p: t.accounts.lock(s.id), None),
    "Accounts.not_live": (lambda t, s, p: t.accounts.not_live([s.id]), {}),
    "AccountMoves.lock": (lambda t, s, p: t.moves.lock(s.id), None),
    "AccountMoves.get": (lambda t, s, p: t.moves.get(s.id), None),
    "AccountMoves.unparked": (lambda t, s, p: t.moves.unparked(s.id), 0),
    "AccountMoves.has_deleted_endpoints": (
        lambda t, s, p: t.moves.has_deleted_endpoints(s.id),
        False,
    ),
    "AccountMoves.sealed_under": (lambda t, s, p: t.moves.sealed_under(s.id), set()),
    "AccountMoves.is_loaded_by": (lambda t, s, p: t.moves.is_loaded_by(s.id, p.key.id), False),
    "Keys.all": (lambda t, s, p: t.keys.all(s.id), []),
    "Keys.page": (lambda t, s, p: t.keys.page(s.id, ALL), []),
    "Projects.get": (lambda t, s, p: t.projects.get(s.id, p.project.id), None),
    "Projects.page": (lambda t, s, p: t.projects.page(s.id, ALL), []),
    "Projects.search": (lambda t, s, p: t.projects.search(s.id, "", 5), []),
    "Projects.lock": (lambda t, s, p: t.projects.lock([(s.id, p.project.id)]), {}),
    "Projects.files_to_erase": (lambda t, s, p: t.projects.files_to_erase(s.id, 5), {}),
    "Projects.artifacts": (lambda t, s, p: t.projects.artifacts(s.id, p.project.id), []),
    "Endpoints.get": (lambda t, s, p: t.endpoints.get(s.id, p.endpoint.id), None),
    "Endpoints.lock": (lambda t, s, p: t.endpoints.lock(s.id, p.endpoint.id), None),
    "Endpoints.count": (lambda t, s, p: t.endpoints.count(s.id), 0),
    "Endpoints.page": (lambda t, s, p: t.endpoints.page(s.id, ALL), []),
    "Endpoints.subscribers": (lambda t, s, p: t.endpoints.subscribers([s.id]), {}),
    "Endpoints.secrets": (lambda t, s, p: t.endpoints.secrets(s.id, [p.endpoint.id]), {}),
    "Reports.find": (lambda t, s, p: t.reports.find([(s.id, p.report.answer.report_id)]), {}),
    "Users.get": (lambda t, s, p: t.users.get(s.id, p.user.id), None),
    "Users.by_external_id": (
        lambda t, s, p: t.users.by_external_id(s.id, str(p.user.external_id)),
        None,
    ),
    "PortalLinks.get": (lambda t, s, p: t.portal_links.get(s.id, p.portal_link.id), None),
    "Users.by_identity": (
        lambda t, s, p: t.users.by_identity(
            s.id, str(p.user.oidc_issuer), str(p.user.oidc_subject)
        ),
        None,
    ),
    "Users.page": (lambda t, s, p: t.users.page(s.id, ALL), []),
    "Users.owners": (lambda t, s, p: t.users.owners(s.id), []),
    "Invitations.get": (lambda t, s, p: t.invitations.get(s.id, p.invitation.id), None),
    "Invitations.page": (lambda t, s, p: t.invitations.page(s.id, ALL, s.now), []),
    "Invitations.count": (lambda t, s, p: t.invitations.count(s.id, s.now), 0),
    "SecretReveals.find": (
        lambda t, s, p: t.secret_reveals.find(s.id, p.reveal.digest, s.now),
        None,
    ),
    "Inboxes.get": (lambda t, s, p: t.inboxes.get(s.id), None),
    "Inboxes.messages": (lambda t, s, p: t.inboxes.messages(s.id, ALL), []),
    "Audit.page": (lambda t, s, p: t.audit.page(s.id, ALL), []),
    "Audit.last_of": (lambda t, s, p: t.audit.last_of(s.id, Page(1), EVERY_ENTRY), None),
    "Events.get": (lambda t, s, p: t.events.get(s.id, p.event.id), None),
    "Events.page": (lambda t, s, p: t.events.page(s.id, EventFilter(), ALL), []),
    "Deliveries.get": (lambda t, s, p: t.deliveries.get(s.id, p.ended.id), None),
    "Deliveries.lock": (lambda t, s, p: t.deliveries.lock(s.id, p.ended.id), None),
    "Deliveries.page": (lambda t, s, p: t.deliveries.page(s.id, DeliveryFilter(), ALL), []),
    "Deliveries.of_events": (lambda t, s, p: t.deliveries.of_events(s.id, [p.event.id]), {}),
    "Deliveries.retrying": (lambda t, s, p: t.deliveries.retrying(s.id, [p.endpoint.id]), {}),
    "DeliveryCounts.of_endpoints": (
        lambda t, s, p: t.counts.of_endpoints(s.id, [p.endpoint.id], Bars(BEGINNING, 60, 60)),
        {},
    ),
    "DeliveryCounts.of_account": (
        lambda t, s, p: t.counts.of_account(s.id, Bars(BEGINNING, 60, 60)),
        [],
    ),
    "Attempts.of_delivery": (lambda t, s, p: t.attempts.of_delivery(s.id, p.ended.id), []),
    "Attempts.last_of": (lambda t, s, p: t.attempts.last_of(s.id, [p.ended.id]), {}),
    "Attempts.figures_of": (lambda t, s, p: t.attempts.figures_of(s.id, [p.ended.id]), []),
    "BulkRetries.get": (lambda t, s, p: t.bulk_retries.get(s.id, p.endpoint.id, p.job.id), None),
    "BulkRetries.lock": (lambda t, s, p: t.bulk_retries.lock(s.id, p.job.id), None),
    "BulkRetries.count_candidates": (
        lambda t, s, p: t.bulk_retries.count_candidates(replace(p.job, account_id=s.id)),
        0,
    ),
    "BulkRetries.next_candidates": (
        lambda t, s, p: t.bulk_retries.next_candidates(replace(p.job, account_id=s.id), 10),
        [],
    ),
    "Listeners.get": (lambda t, s, p: t.listeners.get(s.id, p.listener.id), None),
    "Listeners.lock": (lambda t, s, p: t.listeners.lock(s.id, p.listener.id), None),
    "Listeners.lock_named": (lambda t, s, p: t.listeners.lock_named(s.id, p.listener.name), None),
    "Listeners.count": (lambda t, s, p: t.listeners.count(s.id), 0),
    "Listeners.page": (lambda t, s, p: t.listeners.page(s.id, ALL), []),
    "Listeners.to_append": (
        lambda t, s, p: t.listeners.to_append(replace(p.listener, account_id=s.id), 10),
        [],
    ),
    "Listeners.waiting": (
        lambda t, s, p: t.listeners.waiting(
            replace(p.listener, account_id=s.id, acknowledged=-1), s.now, 10
        ),
        [],
    ),
}

DELETED = CancelReason.PROJECT_DELETED
CHANGES: dict[str, tuple[Call, object]] = {
    "Accounts.start_erasing": (lambda t, s, p: t.accounts.start_erasing(s.id, s.now), None),
    "Keys.revoke_all": (lambda t, s, p: t.keys.revoke_all(s.id, s.now), None),
    "Accounts.set_access": (lambda t, s, p: t.accounts.set_access(s.id, False), None),
    "Accounts.erase_some": (lambda t, s, p: t.accounts.erase_some(s.id, 100), True),
    "AccountMoves.end": (lambda t, s, p: t.moves.end(s.id), None),
    "AccountMoves.set_state": (lambda t, s, p: t.moves.set_state(s.id, AccountState.MOVED), None),
    "AccountMoves.park": (lambda t, s, p: t.moves.park(s.id), None),
    "AccountMoves.unpark": (lambda t, s, p: t.moves.unpark(s.id), None),
    "AccountMoves.erase_some": (
        lambda t, s, p: t.moves.erase_some(s.id, 100, refusing=False),
        True,
    ),
    "Projects.save": (
        lambda t, s, p: t.projects.save(
            [replace(p.project, account_id=s.id, status=ProjectStatus.FAILED)]
        ),
        None,
    ),
    "Projects.save_status": (
        lambda t, s, p: t.projects.save_status(
            [replace(p.project, account_id=s.id, status=ProjectStatus.FAILED)]
        ),
        None,
    ),
    "Projects.replace_artifacts": (
        lambda t, s, p: t.projects.replace_artifacts({(s.id, p.project.id): ()}),
        None,
    ),
    "Endpoints.save": (
        lambda t, s, p: t.endpoints.save(replace(p.endpoint, account_id=s.id, enabled=False)),
        None,
    ),
    "Endpoints.delete": (lambda t, s, p: t.endpoints.delete(s.id, p.endpoint.id, s.now), None),
    "Endpoints.drop_secret": (
        lambda t, s, p: t.endpoints.drop_secret(s.id, p.endpoint.id, 1),
        None,
    ),
    "Idempotency.remember": (
        lambda t, s, p: t.idempotency.remember(s.id, p.key.id, p.idempotency_key, b"theirs"),
        None,
    ),
    "Users.save_credentials": (
        lambda t, s, p: t.users.save_credentials(replace(p.user, account_id=s.id, email="x")),
        None,
    ),
    "Sessions.end": (lambda t, s, p: t.sessions.end(s.id, p.session.id), None),
    "Sessions.end_of_user": (lambda t, s, p: t.sessions.end_of_user(s.id, p.user.id), None),
    "SignInLinks.end_of_user": (
        lambda t, s, p: t.sign_in_links.end_of_user(s.id, p.user.id),
        None,
    ),
    "SignInLinks.take": (lambda t, s, p: t.sign_in_links.take(s.id, p.link.id), False),
    "Users.save_identity": (
        lambda t, s, p: t.users.save_identity(replace(p.user, account_id=s.id, oidc_subject="x")),
        None,
    ),
    "Users.set_role": (lambda t, s, p: t.users.set_role(s.id, p.user.id, Role.VIEWER), None),
    "Users.set_external_id": (
        lambda t, s, p: t.users.set_external_id(s.id, p.user.id, "theirs"),
        None,
    ),
    "PortalLinks.take": (
        lambda t, s, p: t.portal_links.take(s.id, p.portal_link.id, s.now, s.now),
        False,
    ),
    "PortalLinks.end": (lambda t, s, p: t.portal_links.end(s.id, p.portal_link.id), None),
    "PortalLinks.end_all": (lambda t, s, p: t.portal_links.end_all(s.id, p.user.id), None),
    "PortalLinks.end_all of all": (lambda t, s, p: t.portal_links.end_all(s.id, None), None),
    "Users.set_alerts": (lambda t, s, p: t.users.set_alerts(s.id, p.user.id, False), None),
    "Users.remove": (lambda t, s, p: t.users.remove(s.id, p.user.id), None),
    "Invitations.take": (lambda t, s, p: t.invitations.take(s.id, p.invitation.id), False),
    "Invitations.end_of_email": (
        lambda t, s, p: t.invitations.end_of_email(s.id, str(p.invitation.email)),
        None,
    ),
    "Invitations.drop_mail": (lambda t, s, p: t.invitations.drop_mail(s.id, p.invitation.id), None),
    "SecretReveals.take": (lambda t, s, p: t.secret_reveals.take(s.id, p.reveal.id), False),
    "Inboxes.set_answer": (lambda t, s, p: t.inboxes.set_answer(s.id, InboxAnswer.CLOSE), None),
    "Inboxes.clear": (lambda t, s, p: t.inboxes.clear(s.id), None),
    "Deliveries.stop_endpoint": (
        lambda t, s, p: t.deliveries.stop_endpoint(s.id, p.endpoint.id, DELETED, s.now),
        None,
    ),
    "Deliveries.stop_endpoint of all": (
        lambda t, s, p: t.deliveries.stop_endpoint(s.id, None, DELETED, s.now),
        None,
    ),
    "Deliveries.stop_project": (
        lambda t, s, p: t.deliveries.stop_project(s.id, p.project.id, DELETED, s.now),
        None,
    ),
    "Deliveries.stop_project at the end of access": (
        lambda t, s, p: t.deliveries.stop_project(
            s.id, p.project.id, CancelReason.PROJECT_ACCESS_EXPIRED, s.now
        ),
        None,
    ),
    "Deliveries.send_again": (
        lambda t, s, p: t.deliveries.send_again(s.id, [p.ended.id], s.now),
        0,
    ),
    "BulkRetries.save": (
        lambda t, s, p: t.bulk_retries.save(replace(p.job, account_id=s.id, retried=9)),
        None,
    ),
    "Listeners.save": (
        lambda t, s, p: t.listeners.save(replace(p.listener, account_id=s.id, events=())),
        None,
    ),
    "Listeners.delete": (lambda t, s, p: t.listeners.delete(s.id, p.listener.id), None),
    "Listeners.delete_acknowledged": (
        lambda t, s, p: t.listeners.delete_acknowledged(
            replace(p.listener, account_id=s.id, settled=UUID(int=2**128 - 1))
        ),
        None,
    ),
}

# These write rows of the account that is named, beside those of any other.
ADDITIONS: dict[str, tuple[Call, object]] = {
    "AccountMoves.load": (
        lambda t, s, p: t.moves.load(
            s.id, Chunk("inboxes", ("token", "answer", "created_at"), [[p.inbox.token, "ok", 0]])
        ),
        None,
    ),
    "Idempotency.claim": (
        lambda t, s, p: t.idempotency.claim(s.id, p.key.id, p.idempotency_key, b"theirs", s.now),
        None,
    ),
    "Inboxes.keep": (
        lambda t, s, p: t.inboxes.keep(Records().inbox_message(s.id), 1),
        None,
    ),
    "Listeners.append": (
        lambda t, s, p: t.listeners.append(replace(p.listener, account_id=s.id), [p.event.id]),
        None,
    ),
    "Reports.add": (
        lambda t, s, p: t.reports.add({(s.id, p.report.answer.report_id): p.report}, s.now),
        None,
    ),
    "Endpoints.put_secret": (
        lambda t, s, p: t.endpoints.put_secret(s.id, p.endpoint.id, Records().secret()),
        None,
    ),
}


async def dump(store: AnyStore, account_id: UUID) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    [owner] = await rows(store, sa.select(accounts.c.number).where(accounts.c.id == account_id))
    for table in OWNED_TABLES:
        column = next(name for name in ("account", "account_id", "id") if name in table.c)
        wanted = owner.number if column == "account" else account_id
        statement = sa.select(table).where(table.c[column] == wanted)
        in_order = statement.order_by(*table.primary_key.columns)
        found[table.name] = [tuple(row) for row in await rows(store, in_order)]
    return found


async def test_a_stranger_finds_nothing(store: AnyStore, records: Records) -> None:
    owned = await populate(store, records)
    stranger = Stranger(records.id(), records.clock.now())

    async with store.transaction() as transaction:
        found = {
            name: await call(transaction, stranger, owned) for name, (call, _) in READS.items()
        }

    assert found == {name: nothing for name, (_, nothing) in READS.items()}


async def test_a_stranger_changes_nothing(store: AnyStore, records: Records) -> None:
    owned = await populate(store, records)
    stranger = Stranger(records.id(), records.clock.now())
    before = await dump(store, owned.account.id)
    assert [name for name, found in before.items() if not found] == []

    changed = []
    for name, (call, nothing) in (CHANGES | ADDITIONS).items():
        async with store.transaction() as transaction:
            if name in ADDITIONS:
                await introduce(transaction, stranger.id)
            assert await call(transaction, stranger, owned) == nothing, name
        if await dump(store, owned.account.id) != before:
            changed.append(name)

    assert changed == []


def protocol_methods() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    for module in (
        record_ports,
        history_ports,
        people_ports,
        inbox_ports,
        listener_ports,
        move_ports,
    ):
        for kind in vars(module).values():
            if inspect.isclass(kind) and getattr(kind, "_is_protocol", False):
                for name, method in vars(kind).items():
                    if inspect.iscoroutinefunction(method):
                        yield kind.__name__, name, method


def test_every_method_that_is_told_an_account_is_tried() -> None:
    plain = {"account_id", "job", "projects", "endpoint", "user", "message", "listener"}
    words = plain | {"account_ids", "keys", "artifacts", "accepted"}
    reported = {
        f"{kind}.{name}"
        for kind, name, method in protocol_methods()
        if words & set(inspect.signature(method).parameters)
    }
    # Whatever these add carries its own account.
    reported -= {"BulkRetries.add", "Endpoints.add", "Users.add", "Listeners.add"}
    assert reported == {name.partition(" ")[0] for name in READS | CHANGES | ADDITIONS}
