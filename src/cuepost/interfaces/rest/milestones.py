"""The call by which the processing pipeline reports milestones; it has most of the traffic."""

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
    """Each milestone is idempotent by its report id and committed together with its deliveries."""
    service, idempotent = context.service, call.idempotent
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
