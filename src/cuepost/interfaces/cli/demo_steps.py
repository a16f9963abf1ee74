"""The steps of the demo; each step checks what it shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuepost.interfaces.cli.demo_files import make_export
from cuepost.interfaces.cli.demo_receiver import NO_CONTENT, Arrival, Receiver
from cuepost.interfaces.cli.demo_service import RETRY_SECONDS, DemoFailed, Service, wait_until

EVENTS = ["project.completed", "project.failed", "project.ready", "project.cancelled"]
TIMEOUT_SECONDS = 10.0
UNAVAILABLE = 503

PrintLine = Callable[[str], None]


@dataclass(slots=True)
class DemoSteps:
    service: Service
    receiver: Receiver
    print_line: PrintLine
    webhook: str = ""
    secrets: list[str] = field(default_factory=list)
    seen: int = 0
    missed: str = ""
    result_url: str = ""
    exported: dict[str, bytes] = field(default_factory=dict)

    def steps(self) -> Sequence[tuple[str, Callable[[], None]]]:
        return (
            ("Register the receiver", self.register),
            ("A project reaches its milestones", self.reach_milestones),
            ("The exported files are downloaded through signed links", self.fetch_result),
            ("A delivery to a failing receiver is retried", self.recover),
            ("The signing secret is rotated", self.rotate),
            ("The endpoint is disabled", self.disable),
            ("The endpoint is enabled, and the missed delivery is retried by hand", self.retry),
            ("The history is complete", self.look_back),
        )

    def register(self) -> None:
        self.print_line(f"POST /v1/webhooks, for {self.receiver.url}")
        body = {"url": self.receiver.url, "events": EVENTS, "description": "The demo's receiver"}
        made = self.service.post("/v1/webhooks", body, expected=201)
        self.webhook, self.secrets = f"/v1/webhooks/{made['id']}", [made["secret"]]
        self.print_line(
            f"The response has the signing secret, which is shown only once: {made['secretHint']}"
        )
        self.print_line("A test event is delivered in the same way as any other event:")
        self.service.post(f"{self.webhook}/test", expected=202)
        self._arrives("webhook.test")

    def reach_milestones(self) -> None:
        project = self._project("Harbour at night")
        self.print_line("The pipeline reports processing, then ready")
        self._reports(project, "processing", "ready")
        self._arrives("project.ready")
        self.print_line("It reports exporting, stores two files, and reports completed")
        self._reports(project, "exporting")
        film, captions = make_export(self.service.folder)
        artifacts = [self._put(film, project, "video"), self._put(captions, project, "captions")]
        self.service.report(project, "completed", artifacts=artifacts)
        self.result_url = self._arrives("project.completed").event["data"]["resultUrl"]
        self.exported = {path.name: path.read_bytes() for path in (film, captions)}

    def fetch_result(self) -> None:
        self.print_line("The event contains the URL of the result, which needs an API key:")
        result = self.service.get(self.result_url.removeprefix(self.service.url))
        links = {link["name"]: link for link in result["links"]}
        self._expect(
            list(links) == list(self.exported),
            f"GET {_shortened(self.result_url)}: {result['status']}, {len(links)} links",
        )
        self.print_line("Download links need no key and expire after 15 minutes:")
        for name, content in self.exported.items():
            fetched = self.service.download(links[name]["url"])
            size = f"{len(fetched):,} bytes"
            self._expect(fetched == content, f"{name}: {size}, identical to the exported file")

    def recover(self) -> None:
        project = self._project("Low tide")
        self.receiver.answer_next(UNAVAILABLE, UNAVAILABLE)
        self.print_line("The receiver responds with 503 twice. The pipeline reports failed")
        self._reports(project, "processing")
        error = {"code": "no_speech", "message": "No speech was found in the audio track."}
        self.service.report(project, "failed", error=error)
        first = self._arrives("project.failed", answered=UNAVAILABLE)
        second = self._arrives("project.failed", answered=UNAVAILABLE, after=first)
        third = self._arrives("project.failed", after=second)
        self._expect(
            first.id == second.id == third.id and first.body == second.body == third.body,
            "all attempts have the same id and exactly the same body",
        )
        pauses = (second.at - first.at, third.at - second.at)
        in_time = all(pause >= least for pause, least in zip(pauses, RETRY_SECONDS, strict=True))
        self._expect(in_time, f"no retry was sent early (delays here: {_seconds(RETRY_SECONDS)})")
        self.print_line(
            "With default settings the delays are 1 and 5 minutes; there are three attempts."
        )

    def rotate(self) -> None:
        self.print_line("POST …/rotate-secret: the previous secret also signs for another 24 hours")
        rotated = self.service.post(f"{self.webhook}/rotate-secret", expected=200)
        self.secrets.insert(0, rotated["secret"])
        self.service.post(f"{self.webhook}/test", expected=202)
        self._arrives("webhook.test")
        self.print_line(
            "POST …/end-overlap, as after a leak: the previous secret stops signing at once"
        )
        self.service.post(f"{self.webhook}/end-overlap", expected=200)
        self.secrets.pop()
        self.service.post(f"{self.webhook}/test", expected=202)
        self._arrives("webhook.test")

    def disable(self) -> None:
        self.print_line("PATCH … enabled: false. Then a project completes")
        self.service.patch(self.webhook, {"enabled": False})
        project = self._project("Fog")
        self._reports(project, "processing", "exporting", "completed")
        [delivery] = self._deliveries(f"?projectId={project}")
        self._expect(
            (delivery["status"], delivery["reason"]) == ("cancelled", "endpoint_disabled"),
            "nothing is sent; the delivery is recorded as cancelled (endpoint_disabled)",
        )
        self.missed = delivery["id"]

    def retry(self) -> None:
        self._expect(
            self.receiver.count() == self.seen,
            "the receiver got nothing while the endpoint was disabled",
        )
        self.service.patch(self.webhook, {"enabled": True})
        self.print_line("POST …/deliveries/{id}/retry")
        path = f"{self.webhook}/deliveries/{self.missed}"
        self.service.post(f"{path}/retry", expected=202)
        arrival = self._arrives("project.completed")
        self._expect(
            arrival.id == self.service.get(path)["eventId"],
            "the receiver got the event that it had missed",
        )

    def look_back(self) -> None:
        def are_delivered() -> bool:
            return all(each["status"] == "delivered" for each in self._deliveries())

        ended = wait_until(are_delivered, TIMEOUT_SECONDS)
        found = self._deliveries()
        attempts = sum(each["attemptCount"] for each in found)
        self._expect(ended, f"GET …/deliveries: {len(found)} deliveries, all with status delivered")
        self._expect(
            attempts == self.seen == self.receiver.count(),
            f"{attempts} attempts are recorded, as many as the receiver got requests",
        )
        health = self.service.get(self.webhook)["health"]
        self._expect(health["state"] == "healthy", f"the endpoint's health is {health['state']}")

    def _put(self, path: Path, project: str, kind: str) -> dict[str, Any]:
        self.print_line(f"cuepost media put {path.name} --project … --kind {kind}")
        return self.service.put(path, project, kind)

    def _project(self, name: str) -> str:
        made: str = self.service.post("/v1/projects", {"name": name}, expected=201)["id"]
        return made

    def _reports(self, project: str, *statuses: str) -> None:
        for status in statuses:
            self.service.report(project, status)

    def _deliveries(self, query: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.service.get(f"{self.webhook}/deliveries{query}")["data"]
        return found

    def _arrives(
        self, event_type: str, *, answered: int = NO_CONTENT, after: Arrival | None = None
    ) -> Arrival:
        """Wait for the next request and check that every valid secret signed it, newest first."""
        arrival = self.receiver.wait_for(self.seen, TIMEOUT_SECONDS)
        if arrival is None:
            raise DemoFailed(f"{event_type} did not arrive within {TIMEOUT_SECONDS:.0f} s")
        self.seen += 1
        if arrival.event["type"] != event_type:
            raise DemoFailed(f"{event_type} was expected, {arrival.event['type']} arrived")
        if not arrival.is_signed_with(*self.secrets):
            raise DemoFailed(f"{event_type} arrived without valid signatures")
        signed = "signature valid" if len(self.secrets) == 1 else "two signatures, both valid"
        pause = "" if after is None else f", {arrival.at - after.at:.1f} s later"
        self.print_line(f"→ {event_type:<17}  {signed}, response {arrival.answered}{pause}")
        if arrival.answered != answered:
            raise DemoFailed(f"the receiver should have responded with {answered}")
        return arrival

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            raise DemoFailed(f"not true: {what}")
        self.print_line(f"✓ {what}")


def _seconds(pauses: Sequence[int]) -> str:
    return " and ".join(f"{pause} s" for pause in pauses)


def _shortened(address: str) -> str:
    """The address without the long project id."""
    return address.rsplit("/", 2)[0] + "/…/result"
