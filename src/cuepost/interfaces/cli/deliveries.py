"""`cuepost deliveries`: watch deliveries and retry them."""

import json
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from cuepost.domain.delivery import FINAL, DeliveryStatus
from cuepost.domain.event_catalog import CATALOG
from cuepost.domain.instants import to_text
from cuepost.interfaces.cli.groups import OrderedGroup
from cuepost.interfaces.cli.output import json_option, print_result
from cuepost.interfaces.cli.params import Instant
from cuepost.interfaces.cli.runtime import CannotRun
from cuepost.interfaces.cli.service_client import ServiceClient, UnknownResource, service_options
from cuepost.interfaces.cli.trigger import outcome

MOST_PAGES = 20
COLOURS = {"delivered": "green", "failed": "red", "cancelled": "yellow", "retrying": "yellow"}

Delivery = dict[str, Any]


@click.group(cls=OrderedGroup)
def deliveries() -> None:
    """Watch deliveries and retry them.

    \b
    Examples:
      cuepost deliveries tail
      cuepost deliveries tail --status failed --no-follow --json
      cuepost deliveries retry 0198c0de-9c4e-7d21-8a1b-3f6a5b7c8d90
      cuepost deliveries retry --webhook ID --since 2027-01-31T00:00:00Z --dry-run
    """


@deliveries.command()
@click.option("--webhook", type=click.UUID, help="Only deliveries to this endpoint.")
@click.option(
    "--status",
    type=click.Choice([each.value for each in DeliveryStatus]),
    help="Only deliveries with this status.",
)
@click.option(
    "--type",
    "event_type",
    type=click.Choice([each.name for each in CATALOG]),
    help="Only events of this type.",
)
@click.option(
    "--include-delivered",
    is_flag=True,
    help="With --status failed: also deliveries that succeeded before and failed at a retry.",
)
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(0, 100),
    default=10,
    show_default=True,
    help="How many existing deliveries to show.",
)
@click.option(
    "--follow/--no-follow", default=True, show_default=True, help="Keep running and show changes."
)
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 60),
    default=1.0,
    show_default=True,
    help="Seconds between two polls.",
)
@service_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def tail(
    *,
    webhook: UUID | None,
    status: str | None,
    event_type: str | None,
    include_delivered: bool,
    limit: int,
    follow: bool,
    interval: float,
    url: str,
    api_key_file: Path | None,
    as_json: bool,
) -> None:
    """Show the latest deliveries and every change to them, until Ctrl-C."""
    client = ServiceClient.of(url, api_key_file)
    path = f"/v1/webhooks/{webhook}/deliveries" if webhook else "/v1/deliveries"
    query = {"status": status, "type": event_type}
    if include_delivered:
        query["includeDelivered"] = "true"
    watch = Watch(client, path, query)
    for each in watch.first(limit):
        _show(each, as_json)
    pause = threading.Event()
    try:
        while follow:
            pause.wait(interval)
            for each in watch.changes():
                _show(each, as_json)
    except KeyboardInterrupt:
        sys.exit(0)


class Watch:
    """Remembers the state in which each delivery was last shown."""

    def __init__(self, client: ServiceClient, path: str, query: dict[str, str | None]) -> None:
        self._client, self._path, self._query = client, path, query
        self._shown: dict[str, tuple[Any, ...]] = {}
        self._oldest = self._newest = ""

    def first(self, limit: int) -> list[Delivery]:
        """The latest `limit` deliveries, oldest first; `changes` ignores older ones."""
        found = self._page(str(max(limit, 1)))["data"]
        self._oldest = self._newest = found[0]["id"] if found else ""
        self._shown = {each["id"]: _state(each) for each in found}
        chosen: list[Delivery] = found[:limit][::-1]
        return chosen

    def changes(self) -> list[Delivery]:
        """Deliveries that are new, or changed since they were shown, oldest first."""
        recent = list(self._recent())
        seen = {each["id"] for each in recent}
        unseen = [
            delivery_id
            for delivery_id, state in self._shown.items()
            if delivery_id not in seen and state[0] not in FINAL
        ]
        recent += [each for each in map(self._again, unseen) if each is not None]
        changed = [each for each in recent if self._shown.get(each["id"]) != _state(each)]
        self._shown |= {each["id"]: _state(each) for each in changed}
        self._newest = max(self._shown, default="")
        return sorted(changed, key=lambda each: str(each["id"]))

    def _recent(self) -> Iterator[Delivery]:
        """Read pages until one contains known deliveries; ids sort by creation time."""
        cursor = None
        for _ in range(MOST_PAGES):
            page = self._page("100", cursor)
            found, cursor = page["data"], page["nextCursor"]
            yield from (
                each for each in found if each["id"] > self._oldest or each["id"] in self._shown
            )
            if cursor is None or found[-1]["id"] <= self._newest:
                return

    def _again(self, delivery_id: str) -> Delivery | None:
        webhook = self._shown[delivery_id][-1]
        try:
            found: Delivery = self._client.get(f"/v1/webhooks/{webhook}/deliveries/{delivery_id}")
        except UnknownResource:
            del self._shown[delivery_id]
            return None
        return {name: value for name, value in found.items() if name not in {"event", "attempts"}}

    def _page(self, limit: str, cursor: str | None = None) -> Any:
        return self._client.get(self._path, **self._query, limit=limit, cursor=cursor)


def _state(delivery: Delivery) -> tuple[Any, ...]:
    return delivery["status"], delivery["attemptCount"], delivery["budget"], delivery["webhookId"]


def _show(delivery: Delivery, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(delivery, ensure_ascii=False))
        return
    status = delivery["status"]
    when = delivery["finishedAt"] or delivery["createdAt"]
    styled = click.style(f"{status:<10}", fg=COLOURS.get(status))
    click.echo(
        f"{when}  {styled}  {delivery['eventType']:<17}  {delivery['id']}  {outcome(delivery)}"
    )


@deliveries.command()
@click.argument("delivery_id", type=click.UUID, required=False)
@click.option("--webhook", type=click.UUID, help="The endpoint; not needed with DELIVERY_ID.")
@click.option("--since", type=Instant(), help="Retry deliveries created at or after this time.")
@click.option(
    "--until", type=Instant(), help="Retry deliveries created before this time.  [default: now]"
)
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice([each.value for each in FINAL]),
    help="Only this status; can be repeated.  [default: failed and cancelled]",
)
@click.option(
    "--include-delivered", is_flag=True, help="Also failed deliveries that succeeded before."
)
@click.option("--dry-run", is_flag=True, help="Only count the deliveries.")
@service_options
@json_option
def retry(
    *,
    delivery_id: UUID | None,
    webhook: UUID | None,
    since: datetime | None,
    until: datetime | None,
    statuses: tuple[str, ...],
    include_delivered: bool,
    dry_run: bool,
    url: str,
    api_key_file: Path | None,
    as_json: bool,
) -> None:
    """Retry one delivery, or the deliveries of an endpoint since a given time.

    A retried event keeps its id and gets up to three new attempts.
    """
    if (delivery_id is None) is (since is None):
        raise click.UsageError("Give either DELIVERY_ID, or --webhook ID and --since TIME.")
    client = ServiceClient.of(url, api_key_file)
    if delivery_id is not None:
        path = _delivery_path(client, delivery_id, webhook)
        retried = client.post(f"{path}/retry")
        words = f"Delivery {delivery_id} of event {retried['eventId']} will be retried."
        print_result(as_json, retried, words)
        return
    if webhook is None or since is None:
        raise click.UsageError("--since needs --webhook ID.")
    body = {
        "since": to_text(since),
        "until": to_text(until) if until else None,
        "statuses": list(statuses),
        "includeDelivered": include_delivered,
        "dryRun": dry_run,
    }
    job = client.post(f"/v1/webhooks/{webhook}/retries", body)
    verb = "would be" if dry_run else "will be"
    print_result(as_json, job, f"{job['count']} deliveries {verb} retried.")


def _delivery_path(client: ServiceClient, delivery_id: UUID, webhook: UUID | None) -> str:
    """The path of the delivery; without `webhook` every endpoint is tried."""
    if webhook is not None:
        return f"/v1/webhooks/{webhook}/deliveries/{delivery_id}"
    for endpoint in client.get("/v1/webhooks", limit="100")["data"]:
        path = f"/v1/webhooks/{endpoint['id']}/deliveries/{delivery_id}"
        try:
            client.get(path)
        except UnknownResource:
            continue
        return path
    raise CannotRun(
        f"There is no delivery {delivery_id}; 'cuepost deliveries tail' lists recent ones."
    )
