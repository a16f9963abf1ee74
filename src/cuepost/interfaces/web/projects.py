"""Projects: create, edit, status, events, results, and milestones reported by hand."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from starlette.responses import Response

from cuepost.application.browse_history import EventView
from cuepost.application.manage_projects import ProjectChange
from cuepost.application.project_result import ProjectResult
from cuepost.application.rehearse import goals_of
from cuepost.domain.access import Scope
from cuepost.domain.errors import (
    Conflict,
    FieldError,
    Gone,
    Invalid,
    MediaUnavailable,
    NotFound,
)
from cuepost.domain.project import MOVES, Origin, Project, ProjectKind, ProjectStatus
from cuepost.interfaces.web.delivery_filters import instant_in, uuid_in
from cuepost.interfaces.web.endpoints import MOST_SHOWN, names_of
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.web.times import in_field
from cuepost.interfaces.wire_models.shapes import LINE
from cuepost.ports.history import EventFilter
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

ALL = "/settings/projects"
ONE = "/settings/projects/{project_id}"
ROWS = 20
EVENTS = 20
LONGEST_NAME = 200


async def show_all(context: PageContext) -> Response:
    return await _list(context, ())


async def create(context: PageContext) -> Response:
    wanted = _wanted(context)
    if wanted.errors:
        return await _list(context, wanted.errors)
    transcript = context.form.text("kind") == ProjectKind.TRANSCRIPT
    try:
        made = await context.do(
            lambda transaction: context.service.projects.create(
                transaction,
                context.caller,
                name=wanted.name,
                kind=ProjectKind.TRANSCRIPT if transcript else ProjectKind.VIDEO,
                origin=Origin.APP,
                access_expires_at=wanted.until,
            )
        )
    except Invalid as invalid:
        # The use case refuses only the access window; its field has another name in this form.
        errors = tuple(replace(error, field="expires") for error in invalid.errors)
        return await _list(context, errors)
    return context.go(f"{ALL}/{made.id}", "project-created")


async def show(context: PageContext) -> Response:
    project_id = context.id("project_id")

    async def read(
        transaction: Transaction,
    ) -> tuple[Project, ProjectResult | None, list[EventView], dict[UUID, str]]:
        service, caller = context.service, context.caller
        project = await service.projects.get(transaction, caller, project_id)
        try:
            result = await service.results.get(transaction, caller, project_id)
        except (Conflict, Gone, MediaUnavailable):
            result = None
        events, names = [], {}
        if caller.webhooks_enabled:
            events = await service.history.events(
                transaction, caller, EventFilter(project_id=project_id), Page(EVENTS)
            )
            names = names_of(await service.webhooks.page(transaction, caller, Page(MOST_SHOWN)))
        return project, result, events, names

    project, result, events, names = await context.see(read)
    return context.page(
        "projects/show.html",
        section="projects",
        project=project,
        result=result,
        events=events,
        names=names,
        goals=goals_of(project),
        moves=MOVES[project.status],
        has_expired=project.has_expired(context.site.now()),
    )


async def show_edit(context: PageContext) -> Response:
    project = await _project(context)
    return _form(
        context, project, project.name, in_field(project.access_expires_at, seconds=True), ()
    )


async def edit(context: PageContext) -> Response:
    """The end of access changes only if the field was changed: the field shows whole seconds,
    and the stored time may be more precise."""
    project_id, wanted = context.id("project_id"), _wanted(context)
    expires = context.form.text("expires").strip()
    if wanted.errors:
        return _form(context, await _project(context), wanted.name, expires, wanted.errors)
    sets_access = wanted.until != instant_in(context.form.text("was"))
    change = ProjectChange(wanted.name, sets_access, wanted.until)
    await context.do(
        lambda transaction: context.service.projects.change(
            transaction, context.caller, project_id, change
        )
    )
    return context.go(f"{ALL}/{project_id}", "project-saved")


async def advance(context: PageContext) -> Response:
    project_id, to = context.id("project_id"), context.form.text("to")
    if to not in list(ProjectStatus):
        raise NotFound
    await context.do(
        lambda transaction: context.service.rehearse.advance(
            transaction, context.caller, project_id, ProjectStatus(to)
        )
    )
    return context.go(f"{ALL}/{project_id}", "project-moved")


async def export(context: PageContext) -> Response:
    project_id = context.id("project_id")
    await context.do(
        lambda transaction: context.service.projects.export(transaction, context.caller, project_id)
    )
    return context.go(f"{ALL}/{project_id}", "project-moved")


async def cancel(context: PageContext) -> Response:
    project_id = context.id("project_id")
    await context.do(
        lambda transaction: context.service.projects.cancel(transaction, context.caller, project_id)
    )
    return context.go(f"{ALL}/{project_id}", "project-moved")


async def delete(context: PageContext) -> Response:
    project_id = context.id("project_id")
    if context.form.text("sure") != "yes":
        raise Invalid(FieldError("sure", "not_sure", "Tick the box to delete the project."))
    await context.do(
        lambda transaction: context.service.projects.delete(transaction, context.caller, project_id)
    )
    return context.go(ALL, "project-deleted")


@dataclass(frozen=True, slots=True)
class _Wanted:
    name: str
    until: datetime | None
    errors: tuple[FieldError, ...]


def _wanted(context: PageContext) -> _Wanted:
    name, expires = context.form.text("name").strip(), context.form.text("expires").strip()
    until, errors = instant_in(expires), []
    if not 1 <= len(name) <= LONGEST_NAME or not re.match(LINE, name):
        errors.append(FieldError("name", "name_length", "Enter a name of 1 to 200 characters."))
    if expires and until is None:
        errors.append(FieldError("expires", "invalid_time", "Enter a date and a time."))
    return _Wanted(name, until, tuple(errors))


async def _project(context: PageContext) -> Project:
    project_id = context.id("project_id")
    return await context.see(
        lambda transaction: context.service.projects.get(transaction, context.caller, project_id)
    )


def _form(
    context: PageContext, project: Project, name: str, expires: str, errors: tuple[FieldError, ...]
) -> Response:
    return context.page(
        "projects/edit.html",
        422 if errors else 200,
        section="projects",
        project=project,
        name=name,
        expires=expires,
        was=context.form.text("was") if errors else expires,
        errors=errors,
    )


async def _list(context: PageContext, errors: tuple[FieldError, ...]) -> Response:
    before = uuid_in(context.query("before"))
    found = await context.see(
        lambda transaction: context.service.projects.page(
            transaction, context.caller, Page(ROWS + 1, before)
        )
    )
    return context.page(
        "projects/list.html",
        422 if errors else 200,
        section="projects",
        projects=found[:ROWS],
        further=found[ROWS - 1].id if len(found) > ROWS else None,
        errors=errors,
        name=context.form.text("name"),
    )


ROUTES = (
    PageRoute(ALL, get=show_all, post=create),
    PageRoute(ONE, get=show),
    PageRoute(f"{ONE}/edit", get=show_edit, post=edit, reads=Scope.PROJECTS_WRITE),
    PageRoute(f"{ONE}/advance", post=advance),
    PageRoute(f"{ONE}/export", post=export),
    PageRoute(f"{ONE}/cancel", post=cancel),
    PageRoute(f"{ONE}/delete", post=delete),
)
