"""Set-ups in which an export does not arrive, each with the cause that has to be named."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from cuepost.application.manage_projects import ProjectChange
from cuepost.domain.attempt import Outcome, TlsFault
from cuepost.domain.project import ProjectKind, ProjectStatus
from cuepost.testing import HANGS, Answer
from tests.application.harness import OPERATOR
from tests.support.engine_harness import HOUR, MINUTE, EngineHarness

URL = "https://hooks.example.com/cue"
SetUp = Callable[[EngineHarness], Awaitable[None]]


async def exported(engine: EngineHarness) -> None:
    await engine.harness.report(engine.harness.milestone(await engine.harness.project()))


def answering(*answers: Answer | Outcome | int) -> SetUp:
    """An endpoint whose receiver does this at each of the three attempts."""

    async def set_up(engine: EngineHarness) -> None:
        engine.transport.will(URL, *answers * 3)
        await engine.harness.endpoint()
        await exported(engine)
        await engine.later(HOUR)

    return set_up


def refused(fault: TlsFault) -> SetUp:
    return answering(Answer(status=None, fault=Outcome.TLS_ERROR, tls_fault=fault))


async def disabled(engine: EngineHarness) -> None:
    endpoint = (await engine.harness.endpoint()).view.endpoint
    await engine.harness.enable(endpoint.id, enabled=False)
    await exported(engine)


async def disabled_meanwhile(engine: EngineHarness) -> None:
    engine.transport.will(URL, 500)
    endpoint = (await engine.harness.endpoint()).view.endpoint
    await exported(engine)
    await engine.later(timedelta(seconds=5))
    await engine.harness.enable(endpoint.id, enabled=False)


async def not_subscribed(engine: EngineHarness) -> None:
    await engine.harness.endpoint("project.failed")
    await exported(engine)


async def subscribed_later(engine: EngineHarness) -> None:
    await exported(engine)
    await engine.later(MINUTE)
    await engine.harness.endpoint()


async def no_endpoint(engine: EngineHarness) -> None:
    await exported(engine)


async def outside_its_window(engine: EngineHarness) -> None:
    await engine.harness.endpoint()
    project = await engine.harness.project(access_expires_at=engine.clock.now())
    await engine.harness.report(engine.harness.milestone(project))


async def window_ended_meanwhile(engine: EngineHarness) -> None:
    engine.transport.will(URL, 500)
    harness = engine.harness
    await harness.endpoint()
    project = await harness.project()
    await harness.report(harness.milestone(project))
    await engine.later(timedelta(seconds=5))
    change = ProjectChange(sets_access=True, access_expires_at=engine.clock.now())
    await harness.do(harness.service.projects.change, harness.owner, project.id, change)


async def deleted_meanwhile(engine: EngineHarness) -> None:
    engine.transport.will(URL, 500)
    harness = engine.harness
    await harness.endpoint()
    project = await harness.project()
    await harness.report(harness.milestone(project))
    await engine.later(timedelta(seconds=5))
    await harness.do(harness.service.projects.delete, harness.owner, project.id)


async def standalone_transcript(engine: EngineHarness) -> None:
    await engine.harness.endpoint()
    project = await engine.harness.project(kind=ProjectKind.TRANSCRIPT)
    await engine.harness.report(engine.harness.milestone(project))


async def not_exported_yet(engine: EngineHarness) -> None:
    await engine.harness.endpoint()
    await engine.harness.project(ProjectStatus.READY)


async def exported_again_and_under_way(engine: EngineHarness) -> None:
    await engine.harness.endpoint()
    project = await engine.harness.project()
    await engine.harness.report(engine.harness.milestone(project))
    await engine.later(MINUTE)
    await engine.harness.report(engine.harness.milestone(project, "exporting"))


async def export_failed(engine: EngineHarness) -> None:
    await engine.harness.endpoint()
    project = await engine.harness.project()
    await engine.harness.report(engine.harness.milestone(project, "failed"))
    await engine.later(MINUTE)


async def cancelled(engine: EngineHarness) -> None:
    await engine.harness.endpoint()
    project = await engine.harness.project()
    await engine.harness.report(engine.harness.milestone(project, "cancelled"))


async def nothing_at_all(engine: EngineHarness) -> None:
    await engine.harness.endpoint()


async def set_access(engine: EngineHarness, *, is_open: bool) -> None:
    harness = engine.harness
    await harness.do(harness.service.access.set_webhooks, OPERATOR, harness.account.id, is_open)


async def access_closed(engine: EngineHarness) -> None:
    await engine.harness.endpoint()
    await set_access(engine, is_open=False)
    await exported(engine)


async def access_was_closed(engine: EngineHarness) -> None:
    await access_closed(engine)
    await set_access(engine, is_open=True)


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
    "certificate of no one": (
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
