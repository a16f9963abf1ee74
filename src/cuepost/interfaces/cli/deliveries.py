"""`cuepost deliveries`: watch what is sent, and send again."""

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
from cuepost.interfaces.cli.groups import InOrder
from cuepost.interfaces.cli.output import json_option, tell
from cuepost.interfaces.cli.params import Instant
from cuepost.interfaces.cli.runtime import CannotRun
from cuepost.interfaces.cli.service_client import NotThere, ServiceClient, service_options
from cuepost.interfaces.cli.trigger import outcome

MOST_PAGES = 20
COLOURS = {"delivered": "green", "failed": "red", "cancelled": "yellow", "retrying": "yellow"}

Delivery = dict[str, Any]


@click.group(cls=InOrder)
def deliveries() -> None:
    """Watch deliveries, and send them again.

    \b
    Examples:
      cuepost deliveries tail
      cuepost deliveries tail --status failed --no-follow --json
      cuepost deliveries retry 0198c0de-9c4e-7d21-8a1b-3f6a5b7c8d90
      cuepost deliveries retry --webhook ID --since 2027-01-31T00:00:00Z --dry-run
    """


@deliveries.command()
@click.option("--webhook", type=click.UUID, help="Only of this endpoint.")
@click.option(
    "--status", type=click.Choice([each.value for each in DeliveryStatus]), help="Only these."
)
@click.option(
    "--type",
    "event_type",
    type=click.Choice([each.name for each in CATALOG]),
    help="Only events of this type.",
)
@click.option(
    "--include-delivered", is_flag=True, help="With --status failed: also those delivered before."
)
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(0, 100),
    default=10,
    show_default=True,
    help="How many to show from before.",
)
@click.option(
    "--follow/--no-follow", default=True, show_default=True, help="Go on and show each change."
)
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 60),
    default=1.0,
    show_default=True,
    help="Seconds between two looks.",
)
@service_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object to a line.")
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
    """Show the latest deliveries, and each change as it happens; Ctrl-C ends it."""
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
    """Knows the state in which it showed each delivery."""

    def __init__(self, client: ServiceClient, path: str, query: dict[str, str | None]) -> None:
        self._client, self._path, self._query = client, path, query
        self._shown: dict[str, tuple[Any, ...]] = {}
        self._oldest = self._newest = ""

    def first(self, limit: int) -> list[Delivery]:
        """The oldest first. What came before them is passed over."""
        found = self._page(str(max(limit, 1)))["data"]
        self._oldest = self._newest = found[0]["id"] if found else ""
        self._shown = {each["id"]: _state(each) for each in found}
        chosen: list[Delivery] = found[:limit][::-1]
        return chosen

    def changes(self) -> list[Delivery]:
        """New ones, and those that were shown and have changed; the oldest first."""
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
        """One page, and more while they are new; ids sort as they were made."""
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
        except NotThere:
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
    told = click.style(f"{status:<10}", fg=COLOURS.get(status))
    click.echo(
        f"{when}  {told}  {delivery['eventType']:<17}  {delivery['id']}  {outcome(delivery)}"
    )


@deliveries.command()
@click.argument("delivery_id", type=click.UUID, required=False)
@click.option("--webhook", type=click.UUID, help="The endpoint; found by itself for one delivery.")
@click.option("--since", type=Instant(), help="Retry all that were made since then.")
@click.option("--until", type=Instant(), help="… and before then.  [default: now]")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice([each.value for each in FINAL]),
    help="Which ended ones; can be given several times.  [default: failed and cancelled]",
)
@click.option(
    "--include-delivered", is_flag=True, help="Also failed ones that were delivered before."
)
@click.option("--dry-run", is_flag=True, help="Only count them.")
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
    """Send one delivery again, or all of an endpoint since a time.

    The event keeps its id; three new attempts begin.
    """
    if (delivery_id is None) is (since is None):
        raise click.UsageError("Name one delivery, or --webhook ID and --since TIME.")
    client = ServiceClient.of(url, api_key_file)
    if delivery_id is not None:
        home = _home(client, delivery_id, webhook)
        again = client.post(f"{home}/retry")
        tell(as_json, again, f"Delivery {delivery_id} of event {again['eventId']} is sent again.")
        return
    if webhook is None or since is None:
        raise click.UsageError("Name the endpoint with --webhook ID.")
    body = {
        "since": to_text(since),
        "until": to_text(until) if until else None,
        "statuses": list(statuses),
        "includeDelivered": include_delivered,
        "dryRun": dry_run,
    }
    job = client.post(f"/v1/webhooks/{webhook}/retries", body)
    verb = "would be" if dry_run else "are"
    tell(as_json, job, f"{job['count']} deliveries {verb} sent again.")


def _home(client: ServiceClient, delivery_id: UUID, webhook: UUID | None) -> str:
    """The address of the delivery, which names its endpoint."""
    if webhook is not None:
        return f"/v1/webhooks/{webhook}/deliveries/{delivery_id}"
    for endpoint in client.get("/v1/webhooks", limit="100")["data"]:
        path = f"/v1/webhooks/{endpoint['id']}/deliveries/{delivery_id}"
        try:
            client.get(path)
        except NotThere:
            continue
        return path
    raise CannotRun(f"There is no delivery {delivery_id}; 'cuepost deliveries tail' shows some.")
