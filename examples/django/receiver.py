"""A receiver in Django, in one file: `python receiver.py 3000` serves it with `runserver`."""

import os
import sys
from pathlib import Path

from django.conf import settings
from django.core.management import execute_from_command_line
from django.urls import path

from cuepost_receiver import Event, Inbox, SqliteStore
from cuepost_receiver.django import inbox_view

LOG = Path(os.environ.get("RECEIVER_LOG", "receiver.log"))

# In a real project this is settings.py.
settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
)


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
# Resume events left over from a crash; in a real project do this in AppConfig.ready.
inbox.start()

# The path has no trailing slash, because redirects are not followed.
urlpatterns = [path("cuepost", inbox_view(inbox))]

if __name__ == "__main__":
    port = sys.argv[1] if len(sys.argv) > 1 else "3000"
    execute_from_command_line(["receiver", "runserver", "--noreload", f"127.0.0.1:{port}"])
