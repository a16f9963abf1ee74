"""`cuepost trigger`: creates a real event of a given type, with a project made for it."""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import click

from cuepost.domain.event_catalog import CATALOG, TEST_EVENT
from cuepost.interfaces.cli.output import json_option, print_result, refusal_reason, table
from cuepost.interfaces.cli.runtime import CannotRun, InvalidInput
from cuepost.interfaces.cli.service_client import ServiceClient, service_options

SERVICE_KEY = "CUEPOST_SERVICE_KEY"
PROJECT_NAME = "cuepost trigger"
POLL_SECONDS = 0.2
LIVE = {"pending", "delivering", "retrying"}
# The statuses that lead a new project to each event.
STATUS_PATHS = {
    "project.ready": ("processing", "ready"),
    "project.completed": ("processing", "exporting", "completed"),
    "project.failed": ("processing", "failed"),
}


@click.command()
@click.argument("event_type", metavar="TYPE", type=click.Choice([each.name for each in CATALOG]))
@click.option("--webhook", type=click.UUID, help="The endpoint to send a webhook.test event to.")
@click.option(
    "--wait",
    type=click.FloatRange(0, 3_600),
    default=20,
    show_default=True,
    help="Seconds to wait for the first response of each receiver.",
)
@service_options
@json_option
def trigger(
    event_type: str,
    *,
    webhook: Any,
    wait: float,
    url: str,
    api_key_file: Path | None,
    as_json: bool,
) -> None:
    """Create a real event of TYPE and show how the receivers responded.

    The command creates a project named 'cuepost trigger' in your account and reports milestones for
    it, so that every endpoint subscribed to TYPE gets a real, signed delivery. Reporting milestones
    needs a service key (CUEPOST_SERVICE_KEY); project.cancelled and webhook.test do not.

    \b
    Examples:
      cuepost trigger project.completed
      cuepost trigger webhook.test --webhook 0198c0de-1111-7abc-8def-0123456789ab

    Exits with 0 if every receiver acknowledged the event, with 1 if one did not or if no endpoint
    subscribes to TYPE.
    """
    client = ServiceClient.of(url, api_key_file)
    if event_type == TEST_EVENT:
        event_id = _test(client, webhook)
    else:
        event_id = _milestone(client, event_type)
    deliveries = _wait_for(client, event_id, wait)
    answered = bool(deliveries) and all(each["status"] == "delivered" for each in deliveries)
    content = {"eventId": event_id, "type": event_type, "deliveries": deliveries}
    print_result(as_json, content, _words(event_type, event_id, deliveries))
    if not answered:
        raise SystemExit(1)


def _test(client: ServiceClient, webhook: Any) -> str:
    if webhook is None:
        endpoints = client.get("/v1/webhooks", limit="2")["data"]
        if len(endpoints) != 1:
            raise InvalidInput(
                "Choose the endpoint with --webhook ID; the account does not have exactly one."
            )
        webhook = endpoints[0]["id"]
    made: str = client.post(f"/v1/webhooks/{webhook}/test")["eventId"]
    return made


def _milestone(client: ServiceClient, event_type: str) -> str:
    key = os.environ.get(SERVICE_KEY, "").strip()
    if event_type in STATUS_PATHS and not key:
        raise InvalidInput(
            f"{event_type} is a milestone of the processing pipeline: set {SERVICE_KEY} to a "
            "service key ('cuepost keys create --service' creates one)."
        )
    project = client.post("/v1/projects", {"name": PROJECT_NAME})["id"]
    if event_type not in STATUS_PATHS:
        client.post(f"/v1/projects/{project}/cancel")
        [event] = client.get("/v1/events", projectId=project)["data"]
        return str(event["id"])
    return _report(client.with_key(key), project, event_type)


def _report(pipeline: ServiceClient, project: str, event_type: str) -> str:
    milestones: list[dict[str, Any]] = [
        {"reportId": f"trigger-{project}-{status}", "projectId": project, "status": status}
        for status in STATUS_PATHS[event_type]
    ]
    if event_type == "project.failed":
        milestones[-1]["error"] = {"code": "triggered", "message": "Created by cuepost trigger."}
    results = pipeline.post("/v1/milestones", {"milestones": milestones})["results"]
    for milestone, result in zip(milestones, results, strict=True):
        if not result["accepted"]:
            raise CannotRun(
                f"The milestone {milestone['status']} was refused: {refusal_reason(result)}"
            )
    return str(results[-1]["eventId"])


def _wait_for(client: ServiceClient, event_id: str, seconds: float) -> list[dict[str, Any]]:
    """The deliveries of the event, once each has had its first attempt or the time is up."""
    deadline, pause, shown_waiting = time.monotonic() + seconds, threading.Event(), False
    while True:
        found: list[dict[str, Any]] = client.get("/v1/deliveries", eventId=event_id, limit="100")[
            "data"
        ]
        waiting = [each for each in found if each["status"] in LIVE and not each["lastAttempt"]]
        if not waiting or time.monotonic() > deadline:
            return found
        if not shown_waiting and sys.stderr.isatty():
            click.echo(f"Waiting for {len(waiting)} of {len(found)} receivers …", err=True)
        shown_waiting = True
        pause.wait(POLL_SECONDS)


def _words(event_type: str, event_id: str, deliveries: list[dict[str, Any]]) -> str:
    if not deliveries:
        return f"{event_type} {event_id} was created, but no endpoint subscribes to it."
    rows = [(each["webhookId"], each["status"], outcome(each), each["id"]) for each in deliveries]
    return f"{event_type} {event_id}\n\n" + table(
        ("ENDPOINT", "STATUS", "RESULT", "DELIVERY"), rows
    )


def outcome(delivery: dict[str, Any]) -> str:
    """The outcome, HTTP status and duration of the last attempt."""
    last = delivery["lastAttempt"]
    if not last:
        return delivery["reason"] or "-"
    status = last.get("responseStatus")
    shown = f"{last['outcome']} {status}" if status else str(last["outcome"])
    return f"{shown}, {last['durationMs']:.0f} ms"
