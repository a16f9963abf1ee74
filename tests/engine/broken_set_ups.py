"""Set-ups in which an export does not arrive, each with the cause that has to be named."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from cuepost.application.manage_projects import ProjectChange
from cuepost.domain.attempt import Outcome, TlsFault
from cuepost.domain.project import ProjectKind, ProjectStatus
from cuepost.testing import HANGS, Answer
from tests.application.world import OPERATOR
from tests.support.stage import HOUR, MINUTE, Stage

URL = "https://hooks.example.com/cue"
SetUp = Callable[[Stage], Awaitable[None]]


async def exported(stage: Stage) -> None:
    await stage.world.report(stage.world.milestone(await stage.world.project()))


def answering(*answers: Answer | Outcome | int) -> SetUp:
    """An endpoint whose receiver does this at each of the three attempts."""

    async def set_up(stage: Stage) -> None:
        stage.transport.will(URL, *answers * 3)
        await stage.world.endpoint()
        await exported(stage)
        await stage.later(HOUR)

    return set_up


def refused(fault: TlsFault) -> SetUp:
    return answering(Answer(status=None, fault=Outcome.TLS_ERROR, tls_fault=fault))


async def disabled(stage: Stage) -> None:
    endpoint = (await stage.world.endpoint()).view.endpoint
    await stage.world.enable(endpoint.id, enabled=False)
    await exported(stage)


async def disabled_meanwhile(stage: Stage) -> None:
    stage.transport.will(URL, 500)
    endpoint = (await stage.world.endpoint()).view.endpoint
    await exported(stage)
    await stage.later(timedelta(seconds=5))
    await stage.world.enable(endpoint.id, enabled=False)


async def not_subscribed(stage: Stage) -> None:
    await stage.world.endpoint("project.failed")
    await exported(stage)


async def subscribed_later(stage: Stage) -> None:
    await exported(stage)
    await stage.later(MINUTE)
    await stage.world.endpoint()


async def no_endpoint(stage: Stage) -> None:
    await exported(stage)


async def outside_its_window(stage: Stage) -> None:
    await stage.world.endpoint()
    project = await stage.world.project(access_expires_at=stage.clock.now())
    await stage.world.report(stage.world.milestone(project))


async def window_ended_meanwhile(stage: Stage) -> None:
    stage.transport.will(URL, 500)
    world = stage.world
    await world.endpoint()
    project = await world.project()
    await world.report(world.milestone(project))
    await stage.later(timedelta(seconds=5))
    change = ProjectChange(sets_access=True, access_expires_at=stage.clock.now())
    await world.do(world.service.projects.change, world.owner, project.id, change)


async def deleted_meanwhile(stage: Stage) -> None:
    stage.transport.will(URL, 500)
    world = stage.world
    await world.endpoint()
    project = await world.project()
    await world.report(world.milestone(project))
    await stage.later(timedelta(seconds=5))
    await world.do(world.service.projects.delete, world.owner, project.id)


async def standalone_transcript(stage: Stage) -> None:
    await stage.world.endpoint()
    project = await stage.world.project(kind=ProjectKind.TRANSCRIPT)
    await stage.world.report(stage.world.milestone(project))


async def not_exported_yet(stage: Stage) -> None:
    await stage.world.endpoint()
    await stage.world.project(ProjectStatus.READY)


async def exported_again_and_under_way(stage: Stage) -> None:
    await stage.world.endpoint()
    project = await stage.world.project()
    await stage.world.report(stage.world.milestone(project))
    await stage.later(MINUTE)
    await stage.world.report(stage.world.milestone(project, "exporting"))


async def export_failed(stage: Stage) -> None:
    await stage.world.endpoint()
    project = await stage.world.project()
    await stage.world.report(stage.world.milestone(project, "failed"))
    await stage.later(MINUTE)


async def cancelled(stage: Stage) -> None:
    await stage.world.endpoint()
    project = await stage.world.project()
    await stage.world.report(stage.world.milestone(project, "cancelled"))


async def nothing_at_all(stage: Stage) -> None:
    await stage.world.endpoint()


async def set_access(stage: Stage, *, is_open: bool) -> None:
    world = stage.world
    await world.do(world.service.access.set_webhooks, OPERATOR, world.account.id, is_open)


async def access_closed(stage: Stage) -> None:
    await stage.world.endpoint()
    await set_access(stage, is_open=False)
    await exported(stage)


async def access_was_closed(stage: Stage) -> None:
    await access_closed(stage)
    await set_access(stage, is_open=True)


BROKEN: dict[str, tuple[SetUp, str]] = {
    "endpoint disabled": (disabled, "endpoint_disabled"),
    "endpoint disabled between attempts": (disabled_meanwhile, "endpoint_disabled"),
    "wrong path": (answering(404), "wrong_path"),
    "gone path": (answering(410), "wrong_path"),
    "expired certificate": (refused(TlsFault.CERTIFICATE_EXPIRED), "certificate_expired"),
    "certificate from the future": (
        refused(TlsFault.CERTIFICATE_NOT_YET_VALID),
        "certificate_not_yet_valid",
    ),
    "certificate of another": (refused(TlsFault.CERTIFICATE_WRONG_HOST), "certificate_wrong_host"),
    "certificate of nobody": (
        refused(TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY),
        "certificate_unknown_authority",
    ),
    "old TLS": (refused(TlsFault.TLS_TOO_OLD), "tls_too_old"),
    "no TLS": (refused(TlsFault.TLS_HANDSHAKE_FAILED), "tls_handshake_failed"),
    "TLS error from before": (answering(Outcome.TLS_ERROR), "tls_error"),
    "not subscribed": (not_subscribed, "not_subscribed"),
    "subscribed later": (subscribed_later, "subscribed_later"),
    "no endpoint": (no_endpoint, "no_endpoint"),
    "project outside its window": (outside_its_window, "project_access_expired"),
    "window ended between attempts": (window_ended_meanwhile, "project_access_expired"),
    "project deleted": (deleted_meanwhile, "project_deleted"),
    "standalone transcript": (standalone_transcript, "standalone_transcript"),
    "not exported yet": (not_exported_yet, "not_exported_yet"),
    "exported again": (exported_again_and_under_way, "not_exported_yet"),
    "export failed": (export_failed, "export_failed"),
    "project cancelled": (cancelled, "project_cancelled"),
    "nothing at all": (nothing_at_all, "nothing_happened"),
    "access closed": (access_closed, "access_closed"),
    "access was closed": (access_was_closed, "access_was_closed"),
    "private address": (answering(Outcome.BLOCKED_DESTINATION), "blocked_destination"),
    "unknown host name": (answering(Outcome.BLOCKED_DESTINATION), "blocked_destination"),
    "nothing listens": (answering(Outcome.CONNECT_ERROR), "connect_error"),
    "no answer in time": (answering(HANGS), "timeout"),
    "redirect": (answering(301), "redirect"),
    "not HTTP": (answering(Outcome.PROTOCOL_ERROR), "protocol_error"),
    "login wanted": (answering(401), "receiver_refused"),
    "signature refused": (answering(403), "receiver_refused"),
    "GET only": (answering(405), "method_not_accepted"),
    "too many": (answering(429), "receiver_busy"),
    "receiver broken": (answering(502), "receiver_error"),
    "teapot": (answering(418), "http_error"),
    "unheard of": (answering(499), "http_error"),
}
