"""The call by which the processing pipeline reports milestones; it has most of the traffic.

Its models are here, because no other interface uses them.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, ValidationError
from msgspec.json import Decoder

from cuepost.application.milestone_batch import Milestone
from cuepost.domain.access import Scope
from cuepost.domain.artifact import FILE_NAME, LONGEST_KEY, LONGEST_NAME, MEDIA_KEY, Artifact
from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.event import SilenceReason
from cuepost.domain.event_catalog import ERROR_MESSAGE_LIMIT
from cuepost.domain.project import ProcessingError, ProjectStatus, Stage
from cuepost.interfaces.rest.answers import Rendered, Reply, keep, kept
from cuepost.interfaces.rest.operation import KIB, Call, Context, Operation
from cuepost.interfaces.wire_models.faults import field_error
from cuepost.interfaces.wire_models.shapes import (
    LINE,
    MEDIA_TYPE,
    TEXT,
    Request,
    ResponseModel,
    Time,
    instant_of,
)
from cuepost.ports.records import ReportAnswer

MILESTONES = "/v1/milestones"
MOST_MILESTONES = 500
MOST_ARTIFACTS = 50
LARGEST_SIZE = 2**53

ReportId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=LINE,
        description="Chosen by the pipeline. A second report with this id gets the first result if "
        "its content is the same, and `report_id_reused` if it is not.",
    ),
]
# In JSON, 5.0 is a whole number as well.
Size = (
    Annotated[int, Meta(ge=0, le=LARGEST_SIZE)]
    | Annotated[float, Meta(ge=0, le=LARGEST_SIZE, multiple_of=1)]
)


class ReportedError(Request, frozen=True):
    code: Annotated[str, Meta(min_length=1, max_length=100, pattern=LINE)]
    message: Annotated[
        str,
        Meta(
            pattern=TEXT,
            description="No caption text. Events contain the first "
            f"{ERROR_MESSAGE_LIMIT} characters.",
        ),
    ]


class ReportedArtifact(Request, frozen=True):
    kind: Annotated[str, Meta(min_length=1, max_length=50, pattern=LINE)]
    name: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME, pattern=FILE_NAME)]
    key: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=LONGEST_KEY,
            pattern=MEDIA_KEY,
            description="The key of the file in the media store.",
        ),
    ]
    content_type: Annotated[str, Meta(min_length=1, max_length=255, pattern=MEDIA_TYPE)]
    size_bytes: Size

    def artifact(self) -> Artifact:
        return Artifact(self.kind, self.name, self.key, self.content_type, int(self.size_bytes))


class MilestoneReport(Request, frozen=True):
    report_id: ReportId
    project_id: UUID
    status: ProjectStatus
    stage: Stage | UnsetType | None = UNSET
    error: ReportedError | UnsetType | None = UNSET
    artifacts: (
        Annotated[
            list[ReportedArtifact],
            Meta(
                max_length=MOST_ARTIFACTS,
                description="The files of a completed export. An empty list removes the existing "
                "files; if omitted or null, they are kept.",
            ),
        ]
        | UnsetType
        | None
    ) = UNSET
    occurred_at: Time | UnsetType | None = UNSET


class MilestoneResult(ResponseModel, frozen=True, kw_only=True):
    """`reason` says why nothing was sent, and `errors` what is wrong with an invalid entry."""

    report_id: Annotated[
        str | None,
        Meta(description="The reported id; null if an invalid entry has no valid id."),
    ]
    accepted: Annotated[
        bool,
        Meta(description="Stored. If not accepted, it may be reported again with the same id."),
    ]
    event_id: UUID | UnsetType = UNSET
    notified: bool
    reason: SilenceReason | UnsetType = UNSET
    errors: (
        Annotated[
            list[FieldError],
            Meta(
                min_length=1,
                description="Set for the reason `invalid`. Fields are relative to the entry: "
                "`error.code`, `artifacts[0].key`.",
            ),
        ]
        | UnsetType
    ) = UNSET

    @classmethod
    def of(cls, answer: ReportAnswer) -> "MilestoneResult":
        return cls(
            report_id=answer.report_id,
            accepted=answer.accepted,
            event_id=answer.event_id or UNSET,
            notified=answer.notified,
            reason=answer.reason or UNSET,
            errors=list(answer.errors) or UNSET,
        )

    @classmethod
    def invalid(cls, report_id: str | None, errors: Sequence[FieldError]) -> "MilestoneResult":
        return cls(
            report_id=report_id,
            accepted=False,
            notified=False,
            reason=SilenceReason.INVALID,
            errors=list(errors),
        )


class MilestoneResults(ResponseModel, frozen=True):
    """One result for each reported milestone, in order."""

    results: list[MilestoneResult]


Entry = Milestone | MilestoneResult
"""A milestone to write, or the result of an entry that is not valid."""


class EntryByEntry(Request, frozen=True):
    """The fallback for a body with invalid entries: each entry is decoded separately."""

    milestones: Annotated[list[Raw], Meta(min_length=1, max_length=MOST_MILESTONES)]

    def __post_init__(self) -> None:
        for place, raw in enumerate(self.milestones):
            if not bytes(raw).startswith(b"{"):
                field = f"milestones[{place}]"
                raise Invalid(FieldError(field, "wrong_type", "This must be an object."))


class ReportMilestones(Request, frozen=True):
    fallback: ClassVar[type[Request] | None] = EntryByEntry
    milestones: Annotated[list[MilestoneReport], Meta(min_length=1, max_length=MOST_MILESTONES)]


class _Identified(Struct, rename="camel"):
    report_id: ReportId


_decode_report = Decoder(MilestoneReport).decode
_decode_identified = Decoder(_Identified).decode


def entry_of(reported: MilestoneReport | Raw) -> Entry:
    if isinstance(reported, Raw):
        return _entry_in(reported)
    error, artifacts, time = reported.error, reported.artifacts, reported.occurred_at
    try:
        occurred_at = instant_of(time, "occurredAt") if isinstance(time, datetime) else None
    except Invalid as invalid:
        return MilestoneResult.invalid(reported.report_id, invalid.errors)
    return Milestone(
        reported.report_id,
        reported.project_id,
        reported.status,
        reported.stage or None,
        ProcessingError(error.code, error.message) if isinstance(error, ReportedError) else None,
        tuple([each.artifact() for each in artifacts]) if isinstance(artifacts, list) else None,
        occurred_at,
    )


def _entry_in(raw: Raw) -> Entry:
    try:
        return entry_of(_decode_report(raw))
    except ValidationError as error:
        fault = field_error(str(error), MilestoneReport)
        return MilestoneResult.invalid(_report_id_in(raw), [fault])


def _report_id_in(raw: Raw) -> str | None:
    try:
        return _decode_identified(raw).report_id
    except ValidationError:
        return None


async def report(context: Context, call: Call[Any, Any]) -> Rendered:
    """Each milestone is idempotent by its report id and committed together with its deliveries."""
    service, idempotent = context.service, call.idempotent
    if idempotent is not None:
        earlier = await service.perform.recall(call.caller, idempotent)
        if earlier is not None:
            return kept(earlier.content, replayed=True)
    body: ReportMilestones | EntryByEntry = call.body
    entries = [entry_of(each) for each in body.milestones]
    milestones = [each for each in entries if isinstance(each, Milestone)]
    answers = iter(await service.milestones.report(call.caller, milestones))
    results = [
        MilestoneResult.of(next(answers)) if isinstance(each, Milestone) else each
        for each in entries
    ]
    rendered = context.render(Reply(MilestoneResults(results)))
    if idempotent is not None:
        await service.perform.remember(call.caller, idempotent, keep(rendered))
    return rendered


OPERATIONS = (
    Operation(
        method="POST",
        path=MILESTONES,
        name="reportMilestones",
        tag="Milestones",
        summary="Report milestones of projects",
        description="Needs a service key. An accepted milestone is committed with its event and "
        "all its deliveries. Entries are validated one by one: an invalid entry gets the reason "
        "`invalid` and its `errors`; the others are accepted. A second report with a `reportId` "
        "gets the first result if its content is the same, and `report_id_reused` otherwise.",
        scope=Scope.MILESTONES_REPORT,
        body=ReportMilestones,
        body_limit=1024 * KIB,
        answer=MilestoneResults,
        run=report,
    ),
)
