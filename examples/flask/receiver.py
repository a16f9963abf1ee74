"""A receiver in Flask."""

import os
from pathlib import Path

from flask import Flask

from cuepost_receiver import Event, Inbox, SqliteStore
from cuepost_receiver.wsgi import WsgiInbox

LOG = Path(os.environ.get("RECEIVER_LOG", "receiver.log"))


def note(word: str, event: Event) -> None:
    with LOG.open("a") as log:
        log.write(f"{word} {event.type} {event.id} {event.project_id}\n")


def handle(event: Event) -> None:
    """Runs at least once after the delivery was acknowledged; it has to be idempotent."""
    match event.type:
        case "project.completed":
            note("fetch", event)  # cuepost_receiver.results.ResultClient follows event.result_url
        case "project.failed":
            note("notify the team", event)
        case _:
            note("ignore", event)


def handle_test(event: Event) -> None:
    note("test", event)


inbox = Inbox(
    SqliteStore(os.environ.get("RECEIVER_INBOX", "inbox.sqlite3")),
    secrets=os.environ["CUEPOST_WEBHOOK_SECRET"].split(","),
    handler=handle,
    on_test=handle_test,
)
# Resume events left over from a crash; forked workers start their own threads when needed.
inbox.start()

app = Flask(__name__)
app.add_url_rule("/cuepost", view_func=WsgiInbox(inbox).view, methods=["POST"])
