"""The test inbox takes deliveries in through the store, checks them, and answers as it is told."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.manage_webhooks import EndpointChange, EndpointWithSecret
from cuepost.domain.attempt import Outcome
from cuepost.domain.errors import Invalid, NotFound
from cuepost.domain.inbox import InboxAnswer, InboxMessage
from cuepost.domain.instants import to_millis
from cuepost.domain.receiver_url import ReceiverUrlRefused, parse_receiver_url
from cuepost.domain.signing import signature_header
from cuepost.engine.inbox_transport import InboxTransport
from cuepost.ports.transport import Exchange, Request
from cuepost.testing import START, Answer, ScriptedTransport, VirtualClock
from tests.application.harness import BASE_URL, POLICY, Harness

EVENT = UUID("01980000-0000-7000-8000-000000000001")
BODY = b'{"id":"1"}'


async def inbox_url(harness: Harness) -> str:
    inbox = await harness.do(harness.service.inbox.mine, harness.owner)
    return f"{BASE_URL}/inbox/{inbox.token}"


async def endpoint(harness: Harness) -> EndpointWithSecret:
    return await harness.endpoint(url=await inbox_url(harness))


class HurriedClock(VirtualClock):
    """A caller that waits lets the time pass."""

    async def wait(self, seconds: float) -> None:
        self.advance(seconds)


@dataclass
class Sender:
    harness: Harness
    outside: ScriptedTransport
    hurried: HurriedClock = field(default_factory=HurriedClock)

    async def send(self, url: str, *secrets: EndpointWithSecret) -> Exchange:
        now = to_millis(self.harness.clock.now()) // 1000
        signed = signature_header([each.secret for each in secrets], EVENT, now, BODY)
        headers = (
            ("webhook-id", str(EVENT)),
            ("webhook-timestamp", str(now)),
            ("webhook-signature", signed),
        )
        service = self.harness.service
        way = InboxTransport(self.outside, service.inbox, service.perform, self.hurried)
        return await way.send(Request(parse_receiver_url(url, POLICY), headers, BODY, 15.0))


@pytest.fixture
def sender(harness: Harness) -> Sender:
    return Sender(harness, ScriptedTransport(harness.clock))


async def messages(harness: Harness) -> list[InboxMessage]:
    return await harness.see(harness.service.inbox.messages, harness.owner, 10)


async def test_an_account_has_one_inbox_and_always_the_same(harness: Harness) -> None:
    assert await inbox_url(harness) == await inbox_url(harness)


async def test_a_delivery_arrives_is_verified_and_acknowledged(
    harness: Harness, sender: Sender
) -> None:
    made = await endpoint(harness)
    exchange = await sender.send(made.view.endpoint.url, made)
    assert (exchange.status, exchange.fault) == (200, None)
    [message] = await messages(harness)
    assert message.body == BODY
    assert message.verified_with == (made.secret.hint,)
    assert dict(message.headers)["webhook-id"] == str(EVENT)
    assert message.received_at == harness.clock.now()
    assert sender.outside.sent == []


async def test_both_secrets_of_an_overlap_are_named(harness: Harness, sender: Sender) -> None:
    made = await endpoint(harness)
    rotated = await harness.do(
        harness.service.webhooks.rotate_secret, harness.owner, made.view.endpoint.id
    )
    await sender.send(made.view.endpoint.url, rotated, made)
    [message] = await messages(harness)
    assert message.verified_with == (rotated.secret.hint, made.secret.hint)


async def test_what_was_signed_with_another_secret_is_shown_as_not_verified(
    harness: Harness, sender: Sender
) -> None:
    made = await endpoint(harness)
    await sender.send(made.view.endpoint.url, await harness.endpoint())
    [message] = await messages(harness)
    assert message.verified_with == ()


@pytest.mark.parametrize(
    ("answer", "status", "fault"),
    [
        (InboxAnswer.NOT_FOUND, 404, None),
        (InboxAnswer.SERVER_ERROR, 500, None),
        (InboxAnswer.REDIRECT, 302, None),
        (InboxAnswer.CLOSE, None, Outcome.CONNECT_ERROR),
    ],
)
async def test_it_answers_as_it_is_told_and_keeps_what_arrived(
    harness: Harness, sender: Sender, answer: InboxAnswer, status: int | None, fault: Outcome | None
) -> None:
    url = await inbox_url(harness)
    token = url.rpartition("/")[2]
    await harness.do(harness.service.inbox.answer_with, harness.owner, token, answer)
    exchange = await sender.send(url)
    assert (exchange.status, exchange.fault) == (status, fault)
    assert [message.answer for message in await messages(harness)] == [answer]


async def test_a_slow_inbox_runs_into_the_timeout(harness: Harness, sender: Sender) -> None:
    url = await inbox_url(harness)
    token = url.rpartition("/")[2]
    await harness.do(harness.service.inbox.answer_with, harness.owner, token, InboxAnswer.SLOW)
    exchange = await sender.send(url)
    assert (exchange.fault, exchange.duration_ms) == (Outcome.TIMEOUT, 15_000)
    assert sender.hurried.now() == START + timedelta(seconds=15)


async def test_an_inbox_that_does_not_exist_cannot_be_reached(
    harness: Harness, sender: Sender
) -> None:
    exchange = await sender.send(f"{BASE_URL}/inbox/{'A' * 32}")
    assert exchange.fault is Outcome.CONNECT_ERROR
    assert await messages(harness) == []


async def test_every_other_receiver_is_called_outside(harness: Harness, sender: Sender) -> None:
    sender.outside.will("https://hooks.example.com/", Answer(status=204))
    exchange = await sender.send("https://hooks.example.com/")
    assert exchange.status == 204
    assert await messages(harness) == []


async def test_only_the_own_inbox_can_be_an_endpoint(harness: Harness) -> None:
    stranger = await harness.new_owner()
    theirs = await harness.do(harness.service.inbox.mine, stranger)
    with pytest.raises(Invalid) as caught:
        await harness.endpoint(url=f"{BASE_URL}/inbox/{theirs.token}")
    assert [error.code for error in caught.value.errors] == ["inbox_unknown"]
    webhook_id = (await harness.endpoint()).view.endpoint.id
    wanted = EndpointChange(url=f"{BASE_URL}/inbox/{theirs.token}")
    with pytest.raises(Invalid):
        await harness.do(harness.service.webhooks.change, harness.owner, webhook_id, wanted)


async def test_the_inbox_of_another_account_is_not_there(harness: Harness) -> None:
    inbox, stranger = harness.service.inbox, await harness.new_owner()
    token = (await inbox_url(harness)).rpartition("/")[2]
    await harness.do(inbox.mine, stranger)
    for deed in (
        harness.see(inbox.opened, stranger, token),
        harness.do(inbox.clear, stranger, token),
        harness.do(inbox.answer_with, stranger, token, InboxAnswer.CLOSE),
    ):
        with pytest.raises(NotFound):
            await deed


async def test_clearing_leaves_nothing(harness: Harness, sender: Sender) -> None:
    url = await inbox_url(harness)
    await sender.send(url)
    await harness.do(harness.service.inbox.clear, harness.owner, url.rpartition("/")[2])
    assert await messages(harness) == []


@pytest.mark.parametrize(
    "text",
    [
        f"{BASE_URL}/inbox/",
        f"{BASE_URL}/inbox/short",
        f"{BASE_URL}/inbox/{'A' * 33}",
        f"{BASE_URL}/inbox/{'A' * 32}/..",
        f"{BASE_URL}/inbox/{'A' * 32}?x",
        f"{BASE_URL}/inbox/../{'A' * 29}",
        f"{BASE_URL}:8000/inbox/{'A' * 32}",
        f"{BASE_URL.upper()}/inbox/{'A' * 32}",
    ],
)
def test_only_the_exact_address_of_an_inbox_is_one(text: str) -> None:
    policy = replace(POLICY, ports=((443, 443), (8000, 8000)))
    assert parse_receiver_url(text, policy).inbox is None


def test_an_address_that_may_not_be_called_is_no_hindrance_and_opens_no_other() -> None:
    local = replace(POLICY, inbox_prefix="http://127.0.0.1:8000/inbox/")
    inbox = f"http://127.0.0.1:8000/inbox/{'A' * 32}"
    assert parse_receiver_url(inbox, local).inbox == "A" * 32
    for other in ("http://127.0.0.1:8000/inbox/x", "http://127.0.0.1:8000/v1/webhooks"):
        with pytest.raises(ReceiverUrlRefused):
            parse_receiver_url(other, local)
