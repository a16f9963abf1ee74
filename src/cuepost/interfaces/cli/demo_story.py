"""The story that the demo tells, step by step; each step checks what it shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuepost.interfaces.cli.demo_files import make_export
from cuepost.interfaces.cli.demo_receiver import NO_CONTENT, Arrival, Receiver
from cuepost.interfaces.cli.demo_service import RETRY_SECONDS, DemoFailed, Service, wait_until

EVENTS = ["project.completed", "project.failed", "project.ready", "project.cancelled"]
PATIENCE_SECONDS = 10.0
UNAVAILABLE = 503

Say = Callable[[str], None]


@dataclass(slots=True)
class Story:
    service: Service
    receiver: Receiver
    say: Say
    webhook: str = ""
    secrets: list[str] = field(default_factory=list)
    seen: int = 0
    left_out: str = ""
    result_url: str = ""
    exported: dict[str, bytes] = field(default_factory=dict)

    def steps(self) -> Sequence[tuple[str, Callable[[], None]]]:
        return (
            ("Register the receiver", self.register),
            ("A project goes through its milestones", self.reach_milestones),
            ("The result is fetched through fresh links", self.fetch_result),
            ("A receiver that fails is tried again", self.recover),
            ("The signing secret is rotated", self.rotate),
            ("The endpoint is disabled", self.disable),
            ("It is enabled, and what it missed is sent by hand", self.retry),
            ("The service remembers all of it", self.look_back),
        )

    def register(self) -> None:
        self.say(f"POST /v1/webhooks, for {self.receiver.url}")
        body = {"url": self.receiver.url, "events": EVENTS, "description": "The demo's receiver"}
        made = self.service.post("/v1/webhooks", body, expected=201)
        self.webhook, self.secrets = f"/v1/webhooks/{made['id']}", [made["secret"]]
        self.say(f"The answer has the signing secret, this once: {made['secretHint']}")
        self.say("A test event goes the way that every event goes:")
        self.service.post(f"{self.webhook}/test", expected=202)
        self._arrives("webhook.test")

    def reach_milestones(self) -> None:
        project = self._project("Harbour at night")
        self.say("The pipeline reports: processing, ready for review")
        self._reports(project, "processing", "ready")
        self._arrives("project.ready")
        self.say("It reports: exporting, stores two files, and reports: completed")
        self._reports(project, "exporting")
        film, captions = make_export(self.service.folder)
        artifacts = [self._put(film, project, "video"), self._put(captions, project, "captions")]
        self.service.report(project, "completed", artifacts=artifacts)
        self.result_url = self._arrives("project.completed").event["data"]["resultUrl"]
        self.exported = {path.name: path.read_bytes() for path in (film, captions)}

    def fetch_result(self) -> None:
        self.say("The event names the address of the result, for whoever has an API key:")
        result = self.service.get(self.result_url.removeprefix(self.service.url))
        links = {link["name"]: link for link in result["links"]}
        self._expect(
            list(links) == list(self.exported),
            f"GET {_shortened(self.result_url)}: {result['status']}, {len(links)} links",
        )
        self.say("A link needs no key, and lives for 15 minutes; here it is followed at once:")
        for name, content in self.exported.items():
            fetched = self.service.download(links[name]["url"])
            size = f"{len(fetched):,} bytes"
            self._expect(fetched == content, f"{name}: {size}, just as it was exported")

    def recover(self) -> None:
        project = self._project("Low tide")
        self.receiver.answer_next(UNAVAILABLE, UNAVAILABLE)
        self.say("The receiver is down for a while. The pipeline reports: failed")
        self._reports(project, "processing")
        error = {"code": "no_speech", "message": "No speech was found in the sound track."}
        self.service.report(project, "failed", error=error)
        first = self._arrives("project.failed", answered=UNAVAILABLE)
        second = self._arrives("project.failed", answered=UNAVAILABLE, after=first)
        third = self._arrives("project.failed", after=second)
        self._expect(
            first.id == second.id == third.id and first.body == second.body == third.body,
            "every attempt has the same id and, byte for byte, the same body",
        )
        pauses = (second.at - first.at, third.at - second.at)
        in_time = all(pause >= least for pause, least in zip(pauses, RETRY_SECONDS, strict=True))
        self._expect(in_time, f"no attempt comes before its time (here {_seconds(RETRY_SECONDS)})")
        self.say("A real service waits for 1 minute and then for 5; after three attempts it stops.")

    def rotate(self) -> None:
        self.say("POST …/rotate-secret: the previous secret goes on signing for 24 hours")
        rotated = self.service.post(f"{self.webhook}/rotate-secret", expected=200)
        self.secrets.insert(0, rotated["secret"])
        self.service.post(f"{self.webhook}/test", expected=202)
        self._arrives("webhook.test")
        self.say("POST …/end-overlap, as after a leak: the previous secret stops at once")
        self.service.post(f"{self.webhook}/end-overlap", expected=200)
        self.secrets.pop()
        self.service.post(f"{self.webhook}/test", expected=202)
        self._arrives("webhook.test")

    def disable(self) -> None:
        self.say("PATCH …, enabled: false. A project completes meanwhile")
        self.service.patch(self.webhook, {"enabled": False})
        project = self._project("Fog")
        self._reports(project, "processing", "exporting", "completed")
        [delivery] = self._deliveries(f"?projectId={project}")
        self._expect(
            (delivery["status"], delivery["reason"]) == ("cancelled", "endpoint_disabled"),
            "nothing is sent, and the delivery is kept as cancelled, endpoint_disabled",
        )
        self.left_out = delivery["id"]

    def retry(self) -> None:
        self._expect(self.receiver.count() == self.seen, "nothing came while it was disabled")
        self.service.patch(self.webhook, {"enabled": True})
        self.say("POST …/deliveries/{id}/retry")
        path = f"{self.webhook}/deliveries/{self.left_out}"
        self.service.post(f"{path}/retry", expected=202)
        arrival = self._arrives("project.completed")
        self._expect(
            arrival.id == self.service.get(path)["eventId"], "it is the event that was left out"
        )

    def look_back(self) -> None:
        def are_delivered() -> bool:
            return all(each["status"] == "delivered" for each in self._deliveries())

        ended = wait_until(are_delivered, PATIENCE_SECONDS)
        found = self._deliveries()
        attempts = sum(each["attemptCount"] for each in found)
        self._expect(ended, f"GET …/deliveries: {len(found)} deliveries, all of them delivered")
        self._expect(
            attempts == self.seen == self.receiver.count(),
            f"{attempts} attempts are recorded, and the receiver saw just as many requests",
        )
        health = self.service.get(self.webhook)["health"]
        self._expect(health["state"] == "healthy", f"the endpoint's health is {health['state']}")

    def _put(self, path: Path, project: str, kind: str) -> dict[str, Any]:
        self.say(f"cuepost media put {path.name} --project … --kind {kind}")
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
        """The next request, with every live secret's signature, the newest first."""
        arrival = self.receiver.wait_for(self.seen, PATIENCE_SECONDS)
        if arrival is None:
            raise DemoFailed(f"{event_type} did not arrive within {PATIENCE_SECONDS:.0f} s")
        self.seen += 1
        if arrival.event["type"] != event_type:
            raise DemoFailed(f"{event_type} was expected, {arrival.event['type']} arrived")
        if not arrival.is_signed_with(*self.secrets):
            raise DemoFailed(f"{event_type} arrived without valid signatures")
        signed = "signature valid" if len(self.secrets) == 1 else "two signatures, both valid"
        pause = "" if after is None else f", {arrival.at - after.at:.1f} s later"
        self.say(f"→ {event_type:<17}  {signed}, answered {arrival.answered}{pause}")
        if arrival.answered != answered:
            raise DemoFailed(f"the receiver was to answer {answered} to this one")
        return arrival

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            raise DemoFailed(f"this does not hold: {what}")
        self.say(f"✓ {what}")


def _seconds(pauses: Sequence[int]) -> str:
    return " and ".join(f"{pause} s" for pause in pauses)


def _shortened(address: str) -> str:
    """An id fills half a line and tells nobody anything."""
    return address.rsplit("/", 2)[0] + "/…/result"
