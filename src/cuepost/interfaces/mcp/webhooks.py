"""Tools for webhook endpoints and their secrets."""

from typing import Annotated

from msgspec import Meta

from cuepost.application.manage_webhooks import EndpointChange, EndpointWithSecret
from cuepost.domain.access import Scope
from cuepost.interfaces.mcp.kinds import (
    OneWebhook,
    OneWebhookConfirmed,
    Paged,
    ReceiverHost,
    WebhookId,
)
from cuepost.interfaces.mcp.shapes import Done, NewSecret
from cuepost.interfaces.mcp.tool import Arguments, Tool, ToolContext
from cuepost.interfaces.wire_models.deliveries import Delivery
from cuepost.interfaces.wire_models.paging import cut
from cuepost.interfaces.wire_models.webhooks import (
    Description,
    EventNames,
    ReceiverUrl,
    Webhook,
    WebhookList,
)

Note = Annotated[Description, Meta(description="A note on the purpose of the endpoint.")]


class CreateWebhook(Arguments, frozen=True):
    url: ReceiverUrl
    events: EventNames | None = None
    description: Note | None = None


class UpdateWebhook(Arguments, frozen=True):
    """Omitted fields stay unchanged."""

    webhook_id: WebhookId
    url: ReceiverUrl | None = None
    events: EventNames | None = None
    description: Note | None = None
    enabled: Annotated[bool, Meta(description="false cancels pending deliveries.")] | None = None
    confirm_host: ReceiverHost | None = None

    @property
    def is_destructive(self) -> bool:
        return self.url is not None or self.enabled is False

    def change(self) -> EndpointChange:
        return EndpointChange(self.url, self.events, self.description, self.enabled)


async def page(work: ToolContext, wanted: Paged) -> WebhookList:
    views = await work.service.webhooks.page(work.transaction, work.caller, wanted.page())
    return WebhookList(*cut([Webhook.of(view) for view in views], wanted.limit))


async def get(work: ToolContext, wanted: OneWebhook) -> Webhook:
    view = await work.service.webhooks.get(work.transaction, work.caller, wanted.webhook_id)
    return Webhook.of(view)


async def create(work: ToolContext, wanted: CreateWebhook) -> NewSecret:
    made = await work.service.webhooks.create(
        work.transaction, work.caller, wanted.url, wanted.events, wanted.description or ""
    )
    return await _offered(work, made)


async def update(work: ToolContext, wanted: UpdateWebhook) -> Webhook:
    if wanted.is_destructive:
        await _confirm(work, wanted)
    changed = await work.service.webhooks.change(
        work.transaction, work.caller, wanted.webhook_id, wanted.change()
    )
    return Webhook.of(changed)


async def delete(work: ToolContext, wanted: OneWebhookConfirmed) -> Done:
    await _confirm(work, wanted)
    await work.service.webhooks.delete(work.transaction, work.caller, wanted.webhook_id)
    return Done(True, wanted.webhook_id)


async def rotate_secret(work: ToolContext, wanted: OneWebhookConfirmed) -> NewSecret:
    await _confirm(work, wanted)
    made = await work.service.webhooks.rotate_secret(
        work.transaction, work.caller, wanted.webhook_id
    )
    return await _offered(work, made)


async def end_overlap(work: ToolContext, wanted: OneWebhookConfirmed) -> Webhook:
    await _confirm(work, wanted)
    view = await work.service.webhooks.end_overlap(work.transaction, work.caller, wanted.webhook_id)
    return Webhook.of(view)


async def send_test(work: ToolContext, wanted: OneWebhook) -> Delivery:
    delivery = await work.service.webhooks.send_test(
        work.transaction, work.caller, wanted.webhook_id
    )
    return Delivery.of(delivery)


async def _offered(work: ToolContext, made: EndpointWithSecret) -> NewSecret:
    offer = await work.service.reveals.offer(work.transaction, work.caller, made)
    return NewSecret.of(made, offer)


async def _confirm(work: ToolContext, wanted: OneWebhookConfirmed | UpdateWebhook) -> None:
    await work.service.confirm_host.of_endpoint(
        work.transaction, work.caller, wanted.webhook_id, wanted.confirm_host
    )


TOOLS = (
    Tool(
        name="webhooks_list",
        title="List endpoints",
        description="List the account's webhook endpoints with their health, newest first.",
        scope=Scope.WEBHOOKS_READ,
        arguments=Paged,
        answer=WebhookList,
        reads=True,
        run=page,
    ),
    Tool(
        name="webhooks_get",
        title="Get an endpoint",
        description="Get a webhook endpoint: URL, events, health, secret hint.",
        scope=Scope.WEBHOOKS_READ,
        arguments=OneWebhook,
        answer=Webhook,
        reads=True,
        run=get,
    ),
    Tool(
        name="webhooks_create",
        title="Create an endpoint",
        description="Register a public HTTPS receiver (port 443). The signing secret is not in "
        "the result; the user gets it once at revealUrl.",
        scope=Scope.WEBHOOKS_MANAGE,
        arguments=CreateWebhook,
        answer=NewSecret,
        run=create,
    ),
    Tool(
        name="webhooks_update",
        title="Change an endpoint",
        description="Change the URL, events or description of an endpoint, or enable or disable "
        "it. Disabling cancels pending deliveries. A new URL and disabling need confirm_host.",
        scope=Scope.WEBHOOKS_MANAGE,
        arguments=UpdateWebhook,
        answer=Webhook,
        destructive=True,
        idempotent=True,
        run=update,
    ),
    Tool(
        name="webhooks_delete",
        title="Delete an endpoint",
        description="Permanently delete an endpoint, its secrets and its delivery history.",
        scope=Scope.WEBHOOKS_MANAGE,
        arguments=OneWebhookConfirmed,
        answer=Done,
        destructive=True,
        run=delete,
    ),
    Tool(
        name="webhooks_rotate_secret",
        title="Rotate the signing secret",
        description="Create a new signing secret; deliveries are signed with both until the "
        "previous one expires. The user gets the new one once at revealUrl.",
        scope=Scope.WEBHOOKS_MANAGE,
        arguments=OneWebhookConfirmed,
        answer=NewSecret,
        destructive=True,
        run=rotate_secret,
    ),
    Tool(
        name="webhooks_end_overlap",
        title="Stop the previous secret at once",
        description="Use this if a secret has leaked: the previous secret stops signing at once. "
        "Receivers without the new secret will reject deliveries.",
        scope=Scope.WEBHOOKS_MANAGE,
        arguments=OneWebhookConfirmed,
        answer=Webhook,
        destructive=True,
        idempotent=True,
        run=end_overlap,
    ),
    Tool(
        name="webhooks_send_test",
        title="Send a test event",
        description="Queue a webhook.test event only for this endpoint; check it with "
        "deliveries_get a moment later.",
        scope=Scope.WEBHOOKS_MANAGE,
        arguments=OneWebhook,
        answer=Delivery,
        reaches_out=True,
        run=send_test,
    ),
)
