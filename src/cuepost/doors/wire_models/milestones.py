"""Milestones, as the processing pipeline reports them, and what is answered to each."""

from collections.abc import Iterable
from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from cuepost.application.milestone_book import Milestone
from cuepost.domain.artifact import FILE_NAME, LONGEST_KEY, LONGEST_NAME, MEDIA_KEY, Artifact
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import ProcessingError, ProjectStatus, Stage
from cuepost.doors.wire_models.shapes import (
    LINE,
    MEDIA_TYPE,
    TEXT,
    Answer,
    Request,
    Time,
    given,
    instant_of,
)
from cuepost.ports.records import ReportAnswer

MOST_MILESTONES = 500
MOST_ARTIFACTS = 50
LARGEST_SIZE = 2**53

# To JSON 5.0 is a whole number as well.
Size = (
    Annotated[int, Meta(ge=0, le=LARGEST_SIZE)]
    | Annotated[float, Meta(ge=0, le=LARGEST_SIZE, multiple_of=1)]
)


class ReportedError(Request, frozen=True):
    code: Annotated[str, Meta(min_length=1, max_length=100, pattern=LINE)]
    message: Annotated[
        str,
        Meta(
            max_length=2000,
            pattern=TEXT,
            description="No caption text. Events carry its first 300 characters.",
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
            description="Where the file lies in the media store.",
        ),
    ]
    content_type: Annotated[str, Meta(min_length=1, max_length=255, pattern=MEDIA_TYPE)]
    size_bytes: Size

    def artifact(self) -> Artifact:
        return Artifact(self.kind, self.name, self.key, self.content_type, int(self.size_bytes))


class MilestoneReport(Request, frozen=True):
    report_id: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            pattern=LINE,
            description="Chosen by the pipeline; a second report with it gets the first answer.",
        ),
    ]
    project_id: UUID
    status: ProjectStatus
    stage: Stage | UnsetType | None = UNSET
    error: ReportedError | UnsetType | None = UNSET
    artifacts: (
        Annotated[
            list[ReportedArtifact],
            Meta(
                max_length=MOST_ARTIFACTS,
                description="The files of a completed export; an empty list removes those there "
                "are. Omitted or null, they stay.",
            ),
        ]
        | UnsetType
        | None
    ) = UNSET
    occurred_at: Time | UnsetType | None = UNSET

    def milestone(self, place: int) -> Milestone:
        error, artifacts, occurred_at = self.error, self.artifacts, given(self.occurred_at)
        return Milestone(
            self.report_id,
            self.project_id,
            self.status,
            given(self.stage),
            ProcessingError(error.code, error.message)
            if isinstance(error, ReportedError)
            else None,
            tuple([each.artifact() for each in artifacts]) if isinstance(artifacts, list) else None,
            # The field is only named where there is a time to complain about.
            occurred_at and instant_of(occurred_at, f"milestones[{place}].occurredAt"),
        )


class ReportMilestones(Request, frozen=True):
    milestones: Annotated[list[MilestoneReport], Meta(min_length=1, max_length=MOST_MILESTONES)]

    def all(self) -> list[Milestone]:
        return [report.milestone(place) for place, report in enumerate(self.milestones)]


class MilestoneResult(Answer, frozen=True, kw_only=True):
    """`reason` says why nothing was sent."""

    report_id: str
    accepted: bool
    event_id: UUID | UnsetType = UNSET
    notified: bool
    reason: SilenceReason | UnsetType = UNSET


class MilestoneResults(Answer, frozen=True):
    """One for each reported milestone, in order."""

    results: list[MilestoneResult]

    @classmethod
    def of(cls, answers: Iterable[ReportAnswer]) -> "MilestoneResults":
        return cls(
            [
                MilestoneResult(
                    report_id=answer.report_id,
                    accepted=answer.accepted,
                    event_id=answer.event_id or UNSET,
                    notified=answer.notified,
                    reason=answer.reason or UNSET,
                )
                for answer in answers
            ]
        )
