"""Milestone reports of the pipeline; an accepted one is committed with its event and deliveries."""

import hashlib
from collections.abc import Mapping, Sequence
from uuid import UUID

from cuepost.application.milestone_batch import Milestone, MilestoneBatch, MilestoneBatches
from cuepost.application.milestone_batcher import Answers, Entry, MilestoneBatcher
from cuepost.application.perform import Perform
from cuepost.domain.access import Caller, Scope
from cuepost.domain.artifact import faults_of
from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.event import SilenceReason
from cuepost.domain.event_catalog import ERROR_MESSAGE_LIMIT
from cuepost.domain.instants import to_millis
from cuepost.domain.project import STAGE_OF, ProjectStatus, Stage, stage_after
from cuepost.ports.records import ReportAnswer, ReportKey, StoredReport
from cuepost.ports.store import Transaction

# Stands for the account of a project that does not exist.
NO_ACCOUNT = UUID(int=3)
_DIGEST_BYTES = 16


class ReportMilestones:
    def __init__(self, perform: Perform, milestone_batches: MilestoneBatches) -> None:
        self._milestone_batches = milestone_batches
        self._batcher = MilestoneBatcher(perform, self._write)

    async def report(self, caller: Caller, milestones: Sequence[Milestone]) -> list[ReportAnswer]:
        """Return one answer for each milestone, in order."""
        caller.require(Scope.MILESTONES_REPORT)
        entries = [
            _refused(each, SilenceReason.INVALID, *errors)
            if (errors := _contradictions(each))
            else Entry(each, digest_of(each))
            for each in milestones
        ]
        valid = [each for each in entries if isinstance(each, Entry)]
        answers = await self._batcher.submit(valid) if valid else {}
        return [answers[each] if isinstance(each, Entry) else each for each in entries]

    async def _write(
        self, transaction: Transaction, entries: Sequence[Entry], *, skip_locked: bool
    ) -> Answers:
        """With `skip_locked` there is no answer for projects that other transactions have locked,
        nor for those of accounts that are moving; these are written separately.

        Projects are locked first, so that a concurrent report of the same milestone waits for the
        lock and then finds the stored report.
        """
        named = {each.milestone.project_id for each in entries}
        projects = await transaction.projects.lock_any(named, skip_locked=skip_locked)
        missing = named - projects.keys()
        # A project that exists and was skipped is locked.
        locked = await transaction.projects.owners(list(missing)) if missing else {}
        owners = {project.id: project.account_id for project in projects.values()}
        keyed: dict[Entry, ReportKey] = {
            each: (owners.get(each.milestone.project_id, NO_ACCOUNT), each.milestone.report_id)
            for each in entries
            if each.milestone.project_id not in locked
        }
        known = await transaction.reports.find([k for k in keyed.values() if k[0] != NO_ACCOUNT])
        batch = await self._milestone_batches.open(transaction, projects)
        if skip_locked and batch.not_live:
            keyed = {each: key for each, key in keyed.items() if key[0] not in batch.moving}
        answers, new = _decided(keyed, known, batch)
        await batch.write(transaction)
        await transaction.reports.add(new, batch.now)
        return answers


def _decided(
    keyed: Mapping[Entry, ReportKey], known: dict[ReportKey, StoredReport], batch: MilestoneBatch
) -> tuple[Answers, dict[ReportKey, StoredReport]]:
    """The answer to each entry, and the reports to store; `known` gets these as well."""
    answers: Answers = {}
    answered: dict[tuple[ReportKey, bytes], ReportAnswer] = {}
    new: dict[ReportKey, StoredReport] = {}
    for each, key in keyed.items():
        answer = answered.get((key, each.digest))
        if answer is None and key in known:
            answer = _answer_again(known[key], each.milestone, each.digest)
        elif answer is None:
            answer = batch.add(each.milestone)
            # A refused report is not stored, so that it can be repeated later.
            if answer.accepted:
                known[key] = new[key] = StoredReport(answer, each.digest)
        answers[each] = answered[key, each.digest] = answer
    return answers, new


def digest_of(milestone: Milestone) -> bytes:
    """Covers the meaning of the report: neither an implied stage nor text past the limit counts.

    Every part but the artifacts has a fixed place, and no text contains the separator.
    """
    error, artifacts, occurred_at = milestone.error, milestone.artifacts, milestone.occurred_at
    parts = [
        milestone.project_id.hex,
        milestone.status,
        "" if milestone.status in STAGE_OF else milestone.stage or "",
        "" if occurred_at is None else str(to_millis(occurred_at)),
        "" if error is None else error.code,
        "" if error is None else error.message[:ERROR_MESSAGE_LIMIT],
        "" if artifacts is None else str(len(artifacts)),
    ]
    for each in artifacts or ():
        parts += (each.kind, each.name, each.key, each.content_type, str(each.size_bytes))
    return hashlib.sha256("\0".join(parts).encode()).digest()[:_DIGEST_BYTES]


def _answer_again(kept: StoredReport, milestone: Milestone, digest: bytes) -> ReportAnswer:
    if kept.digest is None or kept.digest == digest:
        return kept.answer
    return _refused(milestone, SilenceReason.REPORT_ID_REUSED)


def _refused(milestone: Milestone, reason: SilenceReason, *errors: FieldError) -> ReportAnswer:
    return ReportAnswer(milestone.report_id, False, None, False, reason, errors)


def _contradictions(milestone: Milestone) -> list[FieldError]:
    errors: list[FieldError] = []
    try:
        stage_after(Stage.PROCESSING, milestone.status, milestone.stage)
    except Invalid as invalid:
        errors += invalid.errors
    if milestone.error is not None and milestone.status is not ProjectStatus.FAILED:
        errors.append(
            FieldError("error", "error_not_expected", "Only a failed milestone has an error.")
        )
    if milestone.artifacts and milestone.status is not ProjectStatus.COMPLETED:
        errors.append(
            FieldError(
                "artifacts", "artifacts_not_expected", "Only a completed milestone has artifacts."
            )
        )
    errors += [
        FieldError(f"artifacts[{place}].{fault.field}", fault.code, fault.message)
        for place, artifact in enumerate(milestone.artifacts or ())
        for fault in faults_of(artifact.name, artifact.key)
    ]
    return errors
