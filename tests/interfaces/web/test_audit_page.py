"""The audit trail as sentences."""

import re
from dataclasses import replace

import pytest

from cuepost.domain.access import Interface
from cuepost.domain.audit import Action
from cuepost.domain.delivery import DeliveryStatus
from cuepost.interfaces.web.audit_sentences import SENTENCES, Names, sentence
from tests.application.harness import OPERATOR
from tests.interfaces.rest.client import attempt_of
from tests.interfaces.web.endpoints import LIST, URL, create, endpoints_of
from tests.interfaces.web.page_client import PageClient
from tests.support.records import Records

AUDIT = "/settings/audit"
ENTRY = re.compile(r'<td data-label="What" title="([^"]+)"><span class="wrap">(.*?)</span></td>')


async def entries(page_client: PageClient) -> dict[str, str]:
    return dict(ENTRY.findall((await page_client.get(AUDIT)).text))


def test_every_action_has_a_sentence() -> None:
    assert set(Action) - set(SENTENCES) == set()


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (Action.WEBHOOK_CHANGED, "changed an endpoint that was deleted since"),
        (Action.TEST_SENT, "sent a test event to an endpoint that was deleted since"),
        (Action.PROJECT_REHEARSED, "reported a project that was deleted since as <em>ready</em>"),
        (Action.PROJECT_DELETED, "deleted a project"),
    ],
)
def test_what_was_deleted_and_has_no_name_is_not_told_by_its_id(action: Action, said: str) -> None:
    records = Records()
    entry = records.audit_entry(records.id(), action=action, details={"status": "ready"})
    shown = sentence(entry, Names("", "user:1", {}))
    assert shown == f"<strong>The API key CI 🔑</strong> {said}"


async def test_entries_name_and_link_what_they_are_about(page_client: PageClient) -> None:
    await create(page_client, description="Production <1>")
    [view] = await endpoints_of(page_client)
    here = f"{LIST}/{view.endpoint.id}"
    link = f'<a href="{here}">Production &lt;1&gt;</a>'
    await page_client.get(here)
    await page_client.done(f"{here}/test")
    found = await entries(page_client)
    assert found["webhook.created"] == f"<strong>You</strong> created the endpoint {link}"
    assert found["webhook.test_sent"] == f"<strong>You</strong> sent a test event to {link}"
    assert found["user.signed_in"] == "<strong>You</strong> signed in by <em>link</em>"
    assert found["user.sign_in_link_made"].startswith("<strong>The operator ")


async def test_a_deleted_endpoint_goes_by_its_url(page_client: PageClient) -> None:
    await create(page_client, description="Production")
    [view] = await endpoints_of(page_client)
    here = f"{LIST}/{view.endpoint.id}/delete"
    await page_client.get(here)
    await page_client.done(here, host="hooks.example.com")
    found = await entries(page_client)
    assert found["webhook.deleted"] == f"<strong>You</strong> deleted the endpoint <em>{URL}</em>"
    assert found["webhook.created"] == f"<strong>You</strong> created the endpoint <em>{URL}</em>"


async def test_projects_and_deliveries_are_linked(page_client: PageClient) -> None:
    await create(page_client)
    await page_client.get("/settings/projects")
    where = (await page_client.done("/settings/projects", name="Trailer")).partition("?")[0]
    await page_client.get(where)
    await page_client.done(f"{where}/advance", to="completed")
    harness = page_client.harness
    [delivery] = await harness.deliveries()
    await harness.do(lambda transaction: transaction.attempts.add([attempt_of(delivery)]))
    await harness.end(delivery, DeliveryStatus.FAILED)
    await harness.do(harness.service.redeliver.one, harness.owner, delivery.webhook_id, delivery.id)
    found = await entries(page_client)
    assert found["project.rehearsed"] == (
        f'<strong>You</strong> reported the project <a href="{where}">Trailer</a> '
        "as <em>completed</em>"
    )
    assert found["delivery.retried"].endswith(
        f'retried <a href="/settings/deliveries?q={delivery.id}">a delivery</a>'
    )
    assert (await page_client.get(f"/settings/deliveries?q={delivery.id}")).status_code == 303


async def test_a_key_is_called_by_its_name(page_client: PageClient) -> None:
    harness = page_client.harness
    made = await harness.do(
        harness.service.access.create_key,
        OPERATOR,
        harness.account.id,
        name="Build <1>",
        scopes=harness.owner.scopes,
    )
    caller = await harness.service.authenticate.caller(made.token, Interface.REST, None)
    await harness.do(harness.service.webhooks.create, caller, URL, [], "")
    found = await entries(page_client)
    assert found["webhook.created"].startswith("<strong>The API key Build &lt;1&gt;</strong> ")
    assert found["key.created"].endswith(" created the API key <em>Build &lt;1&gt;</em>")


async def test_another_user_is_called_by_the_name_of_that_time(page_client: PageClient) -> None:
    harness = page_client.harness
    named = replace(harness.owner, actor="user:someone", name="ada@example.com")
    await harness.do(harness.service.webhooks.create, named, URL, [], "")
    found = await entries(page_client)
    assert found["webhook.created"].startswith("<strong>ada@example.com</strong> created ")
