"""Alerts: one for each change of an endpoint, shown, sent as an event, and by e-mail."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.smtp_mail import SmtpMailer, SmtpServer
from cuepost.adapters.storage import tables
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.application.alerts import FollowAlerts
from cuepost.application.mail_outbox import SendMails
from cuepost.domain.alert import BACKLOG_FROM, MAIL_LIFE, AlertKind, AlertMail
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.domain.errors import WebhooksNotEnabled
from cuepost.domain.health import QUIET
from cuepost.ports.dispatch import NextStep, Result
from tests.application.harness import Harness
from tests.support import core_statements
from tests.support.mail_server import MailServer, mail_server
from tests.support.records import Records
from tests.support.service_process import free_port

URL = "https://other.example.com/cue"


@dataclass(slots=True)
class Alerting:
    """An endpoint that can fail, a person with an e-mail, and the maintenance jobs."""

    harness: Harness
    server: MailServer
    webhook_id: UUID

    @property
    def jobs(self) -> FollowAlerts:
        return self.harness.service.maintenance.alerts

    @property
    def sending(self) -> SendMails[AlertMail]:
        return self.harness.service.maintenance.alert_mails

    async def fail(self) -> Delivery:
        delivery = await self.harness.complete_to(self.webhook_id)
        await self.harness.record(delivery, DeliveryStatus.FAILED)
        return delivery

    async def fail_many(self, count: int) -> None:
        """In one batch, as the engine records them."""
        harness, now = self.harness, self.harness.clock.now()
        records, worker = Records(harness.clock, harness.ids), harness.ids(now)
        made = [
            records.delivery(harness.account.id, webhook_id=self.webhook_id) for _ in range(count)
        ]
        await harness.do(lambda t: t.deliveries.add(made))

        async def write(transaction: RecordsTransaction) -> None:
            session = transaction.session
            leased = {"status": DeliveryStatus.DELIVERING, "worker": worker}
            await core_statements.run(session, sa.update(tables.queue).values(leased))
            queued = await core_statements.all_rows(session, sa.select(tables.queue))
            which = {"account": queued[0].account, "lane": queued[0].endpoint}
            results = [
                Result(
                    records.assignment(each, **which),
                    records.attempt(each),
                    NextStep(DeliveryStatus.FAILED),
                )
                for each in made
            ]
            assert await transaction.outcomes.record(worker, results, now) == 0

        await harness.sql(write)

    async def succeed(self) -> None:
        delivery = await self.harness.complete_to(self.webhook_id)
        await self.harness.record(delivery, DeliveryStatus.DELIVERED, outcome=Outcome.DELIVERED)

    async def work(self) -> None:
        """Every job, until it has nothing more to do."""
        mailer = SmtpMailer(
            SmtpServer("127.0.0.1", self.server.port), "cuepost@example.com", self.harness.clock
        )
        await self.jobs.end_recovered()
        await self.jobs.watch_backlogs()
        while await self.jobs.announce(by_email=True):
            pass
        while await self.sending.step(mailer):
            pass

    async def open(self) -> list[AlertKind]:
        found = await self.harness.see(self.harness.service.alerts.open, self.harness.owner)
        return [each.kind for each in found if each.webhook_id == self.webhook_id]

    async def events(self) -> list[str]:
        return [each.type for each in await self.harness.events() if "endpoint" in each.type]


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server(free_port()) as server:
        yield server


@pytest.fixture
async def alerting(harness: Harness, server: MailServer) -> Alerting:
    webhook_id = (await harness.endpoint()).view.endpoint.id
    user = Records(harness.clock, harness.ids).user(harness.account.id, email="me@example.com")
    await harness.do(lambda t: t.users.add(user))
    return Alerting(harness, server, webhook_id)


async def test_a_failure_and_a_recovery_are_told_once_each(alerting: Alerting) -> None:
    await alerting.succeed()
    await alerting.work()
    assert (await alerting.open(), alerting.server.subjects) == ([], [])
    alerting.harness.clock.advance(minutes=1)

    await alerting.fail()
    await alerting.work()
    await alerting.work()
    assert await alerting.open() == [AlertKind.FAILING]
    assert alerting.server.subjects == ["[cuepost] Deliveries to hooks.example.com are failing"]
    [mail] = alerting.server.messages
    assert mail["To"] == "me@example.com"
    assert f"/settings/webhooks/{alerting.webhook_id}" in str(mail.get_payload(decode=True))

    alerting.harness.clock.advance(seconds=QUIET.total_seconds())
    await alerting.succeed()
    await alerting.work()
    assert await alerting.open() == []
    assert alerting.server.subjects[1:] == ["[cuepost] hooks.example.com has recovered"]


async def test_it_recovers_without_another_delivery(alerting: Alerting) -> None:
    await alerting.fail()
    alerting.harness.clock.advance(seconds=1)
    await alerting.succeed()
    await alerting.work()
    assert await alerting.open() == [AlertKind.FAILING]

    alerting.harness.clock.advance(seconds=QUIET.total_seconds())
    await alerting.work()
    assert await alerting.open() == []
    assert len(alerting.server.messages) == 2


async def test_an_endpoint_that_answers_now_and_then_alerts_once(alerting: Alerting) -> None:
    for _ in range(10):
        await alerting.fail()
        alerting.harness.clock.advance(seconds=5)
        await alerting.succeed()
        alerting.harness.clock.advance(seconds=5)
        await alerting.work()
    assert len(alerting.server.messages) == 1


async def test_a_disabled_endpoint_alerts_no_longer(alerting: Alerting) -> None:
    await alerting.fail()
    await alerting.work()
    await alerting.harness.enable(alerting.webhook_id, False)
    await alerting.work()
    assert await alerting.open() == []
    assert len(alerting.server.messages) == 1


async def test_an_event_goes_to_other_endpoints_but_never_to_the_one_that_fails(
    alerting: Alerting,
) -> None:
    harness = alerting.harness
    types = ("endpoint.failing", "endpoint.recovered")
    other = (await harness.endpoint(*types, url=URL)).view.endpoint.id
    await harness.endpoint("project.failed", url=URL)
    await alerting.fail()
    await alerting.work()
    [event] = [each for each in await harness.events() if each.type == "endpoint.failing"]
    body = json.loads(event.body)
    assert body["data"].keys() == {"webhookId", "failingSince"}
    assert body["data"]["webhookId"] == str(alerting.webhook_id)
    [delivery] = await harness.deliveries(event_id=event.id)
    assert delivery.webhook_id == other

    await harness.record(delivery, DeliveryStatus.FAILED)
    await alerting.work()
    assert await alerting.events() == ["endpoint.failing"]

    harness.clock.advance(seconds=QUIET.total_seconds())
    await alerting.succeed()
    await alerting.work()
    assert await alerting.events() == ["endpoint.recovered", "endpoint.failing"]


async def test_while_the_mail_server_is_down_mails_wait(alerting: Alerting) -> None:
    alerting.server.refusing = True
    await alerting.fail()
    for _ in range(3):
        await alerting.work()
        alerting.harness.clock.advance(seconds=30)
    assert alerting.server.messages == []

    alerting.server.refusing = False
    alerting.harness.clock.advance(minutes=10)
    await alerting.work()
    await alerting.work()
    assert len(alerting.server.messages) == 1


async def test_a_mail_is_given_up_after_three_days(alerting: Alerting) -> None:
    alerting.server.refusing = True
    await alerting.fail()
    await alerting.work()
    alerting.harness.clock.advance(seconds=MAIL_LIFE.total_seconds())
    await alerting.work()
    alerting.server.refusing = False
    alerting.harness.clock.advance(hours=2)
    await alerting.work()
    assert alerting.server.messages == []


async def test_a_mail_that_was_taken_but_not_sent_is_sent_again(alerting: Alerting) -> None:
    """As after a kill between the two."""
    await alerting.fail()
    while await alerting.jobs.announce(by_email=True):
        pass
    assert await alerting.harness.do(alerting.sending.take)
    await alerting.work()
    assert alerting.server.messages == []
    alerting.harness.clock.advance(minutes=3)
    await alerting.work()
    assert len(alerting.server.messages) == 1
    assert len((await alerting.harness.dump())["alerts"]) == 1


async def test_who_does_not_want_alerts_gets_none(alerting: Alerting) -> None:
    harness = alerting.harness
    user = await harness.see(lambda t: t.users.by_email("me@example.com"))
    assert user is not None
    await harness.do(harness.service.alerts.choose, user, wanted=False)
    await alerting.fail()
    await alerting.work()
    assert await alerting.open() == [AlertKind.FAILING]
    assert alerting.server.messages == []


async def test_a_backlog_is_told_when_it_grows_and_when_it_is_gone(alerting: Alerting) -> None:
    harness = alerting.harness
    delivery = await harness.complete_to(alerting.webhook_id)
    harness.clock.advance(seconds=BACKLOG_FROM.total_seconds() - 1)
    await alerting.work()
    assert await alerting.open() == []
    harness.clock.advance(seconds=1)
    await alerting.work()
    await alerting.work()
    assert await alerting.open() == [AlertKind.BACKLOG]

    await harness.record(delivery, DeliveryStatus.DELIVERED, outcome=Outcome.DELIVERED)
    await alerting.work()
    assert await alerting.open() == []
    assert alerting.server.subjects == [
        "[cuepost] A backlog is growing for hooks.example.com",
        "[cuepost] The backlog for hooks.example.com is gone",
    ]
    assert await alerting.events() == []


async def test_ten_thousand_failures_in_a_minute_are_one_alert(alerting: Alerting) -> None:
    for _ in range(100):
        await alerting.fail_many(100)
        alerting.harness.clock.advance(milliseconds=600)
        await alerting.jobs.announce(by_email=True)
    await alerting.work()
    assert len(alerting.server.messages) == 1
    assert len((await alerting.harness.dump())["alerts"]) == 1


async def test_alerts_are_for_accounts_with_access(harness: Harness) -> None:
    closed = await harness.new_owner(webhooks_enabled=False)
    with pytest.raises(WebhooksNotEnabled):
        await harness.see(harness.service.alerts.open, closed)


async def test_a_deleted_endpoint_takes_its_alerts_along(alerting: Alerting) -> None:
    await alerting.fail()
    harness = alerting.harness
    await alerting.jobs.announce(by_email=True)
    await harness.do(harness.service.webhooks.delete, harness.owner, alerting.webhook_id)
    rows = await harness.dump()
    assert (rows["alerts"], rows["alert_mails"]) == ([], [])
    harness.clock.advance(seconds=timedelta(minutes=1).total_seconds())
    await alerting.work()
    assert alerting.server.messages == []
