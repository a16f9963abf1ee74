"""The call by which the processing pipeline reports; the hot route of the API."""

from typing import Any

from cuepost.application.milestone_batch import Milestone
from cuepost.domain.access import Scope
from cuepost.interfaces.rest.answers import Rendered, Reply, keep, kept
from cuepost.interfaces.rest.operation import KIB, Call, Context, Operation
from cuepost.interfaces.wire_models.milestones import (
    EntryByEntry,
    MilestoneResult,
    MilestoneResults,
    ReportMilestones,
)

MILESTONES = "/v1/milestones"


async def report(context: Context, call: Call[Any, Any]) -> Rendered:
    """Idempotent by report id in itself; a milestone is kept with its deliveries, or not at all."""
    service, idempotent = context.service, context.idempotent
    if idempotent is not None:
        earlier = await service.perform.recall(call.caller, idempotent)
        if earlier is not None:
            return kept(earlier.content, replayed=True)
    body: ReportMilestones | EntryByEntry = call.body
    entries = body.entries()
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
        description="With a service key. Accepted means committed: the move, its event and all "
        "its deliveries. Each entry is judged by itself: one that is not valid gets the reason "
        "`invalid` and its `errors`, and the others are booked. A second report with a `reportId` "
        "gets the first answer if its content is the same, and `report_id_reused` otherwise.",
        scope=Scope.MILESTONES_REPORT,
        body=ReportMilestones,
        body_limit=1024 * KIB,
        answer=MilestoneResults,
        run=report,
    ),
)
