"""Tools for diagnosis."""

from typing import Annotated

from msgspec import Meta

from cuepost.application.diagnose_signature import SignatureQuestion, SignatureVerdict
from cuepost.application.explain_delivery import Question
from cuepost.domain.access import Scope
from cuepost.interfaces.mcp.kinds import ChosenType, DeliveryId, EventId, ProjectId, WebhookId
from cuepost.interfaces.mcp.shapes import DeliveryExplanation
from cuepost.interfaces.mcp.tool import Arguments, Tool, ToolContext
from cuepost.interfaces.wire_models.attempts import Explanation, Fix
from cuepost.interfaces.wire_models.event_types import known_type
from cuepost.interfaces.wire_models.shapes import ResponseModel, Time, optional_instant

LONGEST = 65_536
LONGEST_HEADERS = 16_384

ReceivedHeaders = Annotated[
    dict[str, str] | Annotated[str, Meta(max_length=LONGEST_HEADERS)],
    Meta(description="The request headers as received, as an object or as lines."),
]
ReceivedBody = Annotated[str, Meta(max_length=LONGEST, description="The raw body as received.")]
HeldSecret = Annotated[
    str,
    Meta(
        max_length=1_000,
        description="Omit it: the endpoint's own secrets are checked and never shown. "
        "Pass it only if the user has already shown it here.",
    ),
]
ComputedSignature = Annotated[
    str,
    Meta(max_length=4_096, description="The signature that the receiver's own code computed."),
]
ReceivedAt = Annotated[Time, Meta(description="When it was received, by the receiver's clock.")]


class Explain(Arguments, frozen=True):
    project_id: ProjectId | None = None
    event_id: EventId | None = None
    type: ChosenType | None = None
    webhook_id: WebhookId | None = None


class DiagnoseSignature(Arguments, frozen=True):
    """Pass headers and body as received, or a delivery to take them from, or both."""

    webhook_id: WebhookId
    delivery_id: DeliveryId | None = None
    headers: ReceivedHeaders | None = None
    body: ReceivedBody | None = None
    secret: HeldSecret | None = None
    computed_signature: ComputedSignature | None = None
    received_at: ReceivedAt | None = None

    def __repr__(self) -> str:
        return f"DiagnoseSignature({self.webhook_id})"


class SignatureDiagnosis(ResponseModel, frozen=True):
    valid: bool
    cause: str
    explanation: Explanation
    fix: Fix

    @classmethod
    def of(cls, verdict: SignatureVerdict) -> "SignatureDiagnosis":
        return cls(verdict.is_valid, str(verdict.cause), verdict.sentence, verdict.remedy)


async def explain(work: ToolContext, wanted: Explain) -> DeliveryExplanation:
    question = Question(
        wanted.project_id, wanted.event_id, known_type(wanted.type), wanted.webhook_id
    )
    diagnosis = await work.service.explain.explain(work.transaction, work.caller, question)
    return DeliveryExplanation.of(diagnosis)


async def diagnose_signature(work: ToolContext, wanted: DiagnoseSignature) -> SignatureDiagnosis:
    question = SignatureQuestion(
        webhook_id=wanted.webhook_id,
        delivery_id=wanted.delivery_id,
        headers=wanted.headers,
        body=wanted.body,
        secret=wanted.secret,
        computed=wanted.computed_signature,
        received_at=optional_instant(wanted.received_at, "received_at"),
    )
    verdict = await work.service.signatures.diagnose(work.transaction, work.caller, question)
    return SignatureDiagnosis.of(verdict)


TOOLS = (
    Tool(
        name="webhooks_explain",
        title="Why did it not arrive?",
        description="Answers 'why did my last export not arrive?' in one call: names the cause "
        "(endpoint disabled, not subscribed, wrong path, certificate, access window ended, not "
        "exported yet, …) and what to do. Start here. With only webhook_id it explains the "
        "newest delivery of that endpoint, tests included.",
        scope=Scope.WEBHOOKS_READ,
        arguments=Explain,
        answer=DeliveryExplanation,
        reads=True,
        run=explain,
    ),
    Tool(
        name="signature_diagnose",
        title="Why does the signature not verify?",
        description="Finds out why a receiver rejects a signature: re-serialised body, wrong or "
        "previous secret, secret not decoded, headers missing or mixed up, clock off.",
        scope=Scope.WEBHOOKS_READ,
        arguments=DiagnoseSignature,
        answer=SignatureDiagnosis,
        reads=True,
        run=diagnose_signature,
    ),
)
