"""Explains why nothing was sent: because of the account, its endpoints or the project."""

import json
from collections.abc import Sequence
from dataclasses import replace

from cuepost.application.finding import Finding, FindingCause
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.event import Event
from cuepost.domain.event_catalog import TEST_EVENT
from cuepost.domain.instants import to_text
from cuepost.domain.project import Project, ProjectStatus


def access_closed() -> Finding:
    return Finding(
        FindingCause.ACCESS_CLOSED,
        "Webhooks are not enabled for this account, so nothing is sent.",
        "Ask the operator to open access ('cuepost accounts open-access').",
    )


def no_endpoint() -> Finding:
    return Finding(
        FindingCause.NO_ENDPOINT,
        "The account has no webhook endpoint, so the event could not be sent.",
        "Create an endpoint with the receiver's public HTTPS address.",
    )


def nothing_happened() -> Finding:
    return Finding(
        FindingCause.NOTHING_HAPPENED,
        "No project of this account has ended within the time that history is kept.",
        "Create a project and export it, or send a test event to the endpoint.",
    )


def not_exported(project: Project) -> Finding:
    ready = project.status is ProjectStatus.READY
    return Finding(
        FindingCause.NOT_EXPORTED_YET,
        f"The project {project.id} has been {project.status} since "
        f"{to_text(project.updated_at)}; no export of it has finished since then.",
        "Start its export." if ready else "Wait until it is completed.",
    )


def history_gone(project: Project) -> Finding:
    return Finding(
        FindingCause.HISTORY_GONE,
        f"The project has been {project.status} since {to_text(project.updated_at)}, and the "
        "history of that time has expired.",
        "Fetch the project's result, or export it again for a new event.",
    )


def export_failed(event: Event) -> Finding:
    error = json.loads(event.body)["data"]["error"]
    return Finding(
        FindingCause.EXPORT_FAILED,
        f"The project failed ({error['code']}: {error['message']}), so its export was "
        f"not completed; {event.type} was reported instead.",
        "Fix the cause and export the project again.",
    )


def cancelled() -> Finding:
    return Finding(
        FindingCause.PROJECT_CANCELLED,
        "The project was cancelled, so its export was not completed.",
        "Export the project again.",
    )


def project_deleted() -> Finding:
    return Finding(
        FindingCause.PROJECT_DELETED,
        "The project was deleted, and deleted projects send no events.",
        "Nothing more can be sent about it; create a new project.",
    )


def access_expired() -> Finding:
    return Finding(
        FindingCause.PROJECT_ACCESS_EXPIRED,
        "The project is outside its access window, so nothing is sent about it.",
        "Give the project a later end of access; what was cancelled can then be sent again.",
    )


def standalone_transcript() -> Finding:
    return Finding(
        FindingCause.STANDALONE_TRANSCRIPT,
        "The project is a standalone transcript, and those send no events.",
        "Create a video project, or read the project's status instead.",
    )


def not_sent_to(endpoint: Endpoint, event: Event) -> Finding:
    """Why this endpoint has no delivery of the event."""
    if event.type == TEST_EVENT:
        return Finding(
            FindingCause.NOT_SUBSCRIBED,
            f"A test is sent to one endpoint only, and this one was not sent to {endpoint.url}.",
            "Send a test event to this endpoint.",
            endpoint.id,
        )
    if event.type not in endpoint.events:
        return Finding(
            FindingCause.NOT_SUBSCRIBED,
            f"The endpoint {endpoint.url} is not subscribed to {event.type}, but to "
            f"{', '.join(endpoint.events)}.",
            f"Add {event.type} to the endpoint's events; it then gets future ones.",
            endpoint.id,
        )
    if endpoint.updated_at > event.created_at:
        return Finding(
            FindingCause.SUBSCRIBED_LATER,
            f"No endpoint was subscribed to {event.type} when this happened; the endpoint "
            f"{endpoint.url} was created or changed afterwards.",
            "It gets future ones; read this one from the list of events, or export again.",
            endpoint.id,
        )
    # In older history such events have no cancelled delivery.
    return Finding(
        FindingCause.ACCESS_WAS_CLOSED,
        "The account's access to webhooks was closed when this happened.",
        "Access is open now; read this event from the list of events, or export again.",
        endpoint.id,
    )


def no_event_for(endpoint: Endpoint, types: Sequence[str]) -> Finding:
    return Finding(
        FindingCause.NOTHING_HAPPENED,
        f"There is no event of the type {' or '.join(types)} since the endpoint was created at "
        f"{to_text(endpoint.created_at)}.",
        "Create a project and export it, or send a test event to the endpoint.",
        endpoint.id,
    )


def endpoint_disabled(endpoint: Endpoint) -> Finding:
    return Finding(
        FindingCause.ENDPOINT_DISABLED,
        f"The endpoint {endpoint.url} is disabled, so nothing is sent to it.",
        "Enable the endpoint.",
        endpoint.id,
    )


def nothing_sent(endpoint: Endpoint, reason: Finding) -> Finding:
    sentence = f"Nothing was sent to {endpoint.url} in the time that history is kept."
    return replace(reason, sentence=f"{sentence} {reason.sentence}", webhook_id=endpoint.id)
