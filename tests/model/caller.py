"""Someone who calls the API and knows what has to come of it."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import httpx2
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from cuepost.domain.instants import to_text
from tests.interfaces.rest.client import problem
from tests.model.expected import Attempt, Delivery, Expected, Project, Webhook
from tests.model.service_under_test import ServiceUnderTest
from tests.support.history_checker import signature_fits
from tests.support.history_facts import Seen

T = TypeVar("T")

UNKNOWN = str(UUID(int=7))
SECONDS = st.sampled_from((0, 1, 59, 60, 61, 240, 299, 300, 361, 3_600, 86_399, 86_400))
NUMBER = st.integers(0, 1_000)

Refusal = tuple[int, str]


class Caller(RuleBasedStateMachine):
    """`service` is set by the test that runs it."""

    service: ServiceUnderTest

    def __init__(self) -> None:
        super().__init__()
        self.model = Expected()
        self._names = 0
        self._urls = 0
        self._looked_at = 0
        self._versions: dict[str, object] = {}

    def teardown(self) -> None:
        if self.service.is_running:
            try:
                self.require_lists()
            finally:
                self.service.end()

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: int) -> None:
        self.service.pass_time(timedelta(seconds=seconds))
        self.settle()
        self.require_lists()

    @rule(number=NUMBER, fails=st.booleans())
    def receiver_changes(self, number: int, fails: bool) -> None:
        _, webhook = self.some_webhook(number)
        if webhook is not None:
            self.set_failing(webhook.url, fails)

    def set_failing(self, url: str, fails: bool) -> None:
        change = set.add if fails else set.discard
        change(self.model.failing, url)
        change(self.service.failing, url)

    @rule(is_open=st.booleans())
    def access_is_set(self, is_open: bool) -> None:
        now = self.service.now
        self.service.set_access(is_open=is_open)
        self.model.open = is_open
        if not is_open:
            self.model.advance(now)
            self.model.stop("access_closed")
        self.settle()

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        return self.service.call(method, path, body, **more)

    def read(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def all_of(self, path: str) -> list[dict[str, Any]]:
        """Page by page."""
        page = self.read(path)
        found: list[dict[str, Any]] = page["data"]
        while page["nextCursor"] is not None:
            page = self.read(f"{path}&cursor={page['nextCursor']}")
            assert page["data"]
            found += page["data"]
        return found

    def twice(
        self, path: str, body: Any, why: Refusal | None = None, success: int = 201
    ) -> dict[str, Any]:
        """With an Idempotency-Key, and again: nothing is done by the second call."""
        key = {"Idempotency-Key": self.new_name(), "X-Request-Id": "twice"}
        first = self.call("POST", path, body, headers=key)
        again = self.call("POST", path, body, headers=key)
        self.refused(first, why, success)
        if why is None or why[0] != 403:
            assert again.headers["idempotency-replayed"] == "true"
        assert (again.status_code, again.content) == (first.status_code, first.content)
        made: dict[str, Any] = first.json()
        return made

    def condition(self, path: str, stale: bool | None, why: Refusal | None) -> dict[str, str]:
        """`If-Match` with the version of now or with another one; None is no condition."""
        if stale is None or why is not None:
            return {}
        return {"If-Match": '"another"' if stale else self.call("GET", path).headers["etag"]}

    def require_version(self, path: str, state: object) -> None:
        """Two different states never have the same version, and a version is known again."""
        version = self.call("GET", path).headers["etag"]
        assert self._versions.setdefault(version, state) == state
        known = self.call("GET", path, headers={"If-None-Match": version})
        assert (known.status_code, known.headers["etag"]) == (304, version)

    def refused(self, answer: httpx2.Response, why: Refusal | None, success: int = 200) -> bool:
        if why is not None:
            assert problem(answer) == why
        else:
            assert answer.status_code == success, answer.text
        return why is not None

    def closed(self) -> Refusal | None:
        return None if self.model.open else (403, "webhooks_not_enabled")

    def absence(self, found: Project | Webhook | None) -> Refusal | None:
        if found is None:
            return 404, "not_found"
        is_deleted = isinstance(found, Project) and found.deleted
        return (410, "project_deleted") if is_deleted else None

    def some_project(self, number: int) -> tuple[str, Project | None]:
        return _some(self.model.projects, number)

    def some_webhook(self, number: int) -> tuple[str, Webhook | None]:
        return _some(self.model.webhooks, number)

    def new_name(self) -> str:
        self._names += 1
        return f"name-{self._names}"

    def new_url(self) -> str:
        """Every second receiver fails at first."""
        self._urls += 1
        url = f"https://hooks{self._urls}.example.com/cue"
        self.set_failing(url, self._urls % 2 == 0)
        return url

    def after(self, seconds: int | None) -> datetime | None:
        return None if seconds is None else self.service.now + timedelta(seconds=seconds)

    def settle(self) -> None:
        """The model catches up; what receivers saw is what it says, signed as it says."""
        self.model.advance(self.service.now)
        sent = self.service.running.engine.sent[self._looked_at :]
        expected = self.model.sent[self._looked_at :]
        made = Counter((each.at, each.request.url.text, each.header("webhook-id")) for each in sent)
        assert made == Counter((each.at, each.url, each.event_id) for each in expected)
        by_request = {(each.at, each.url, each.event_id): each for each in expected}
        for each in sent:
            key = (each.at, each.request.url.text, each.header("webhook-id"))
            headers = dict(each.request.headers)
            seen = Seen(each.at.timestamp(), "", headers, each.request.body)
            _require_signed(seen, by_request[key])
        self._looked_at += len(sent)

    def require_lists(self) -> None:
        shown = self.all_of("/v1/projects?limit=100")
        present = {key: each for key, each in self.model.projects.items() if not each.deleted}
        assert {each["id"] for each in shown} == set(present)
        for each in shown:
            self.require_project(each, each["id"])
        if not self.model.open:
            return
        webhooks = self.all_of("/v1/webhooks?limit=100")
        assert {each["id"] for each in webhooks} == set(self.model.webhooks)
        for each in webhooks:
            self.require_webhook(each, each["id"])
        deliveries = self.all_of("/v1/deliveries?limit=100")
        wanted = Counter(map(expected_outline, self.model.deliveries))
        assert Counter(map(outline, deliveries)) == wanted
        events = self.all_of("/v1/events?limit=100")
        assert {each["id"]: each["type"] for each in events} == {
            key: event_type for key, (event_type, _) in self.model.events.items()
        }

    def require_project(self, shown: Mapping[str, Any], project_id: str) -> None:
        project = self.model.projects[project_id]
        until = project.access_until
        names = ("id", "name", "kind", "origin", "status", "stage", "accessExpiresAt")
        assert {name: shown[name] for name in names} == {
            "id": project_id,
            "name": project.name,
            "kind": project.kind,
            "origin": "api",
            "status": project.status,
            "stage": project.stage,
            "accessExpiresAt": None if until is None else to_text(until),
        }

    def require_webhook(self, shown: Mapping[str, Any], webhook_id: str) -> None:
        webhook, now = self.model.webhooks[webhook_id], self.service.now
        until = webhook.previous_until if webhook.overlaps(now) else None
        assert "secret" not in shown
        assert shown["secretHint"] == "whsec_…" + webhook.secret.rstrip("=")[-4:]
        assert (shown["health"]["state"] == "disabled") == (not webhook.enabled)
        names = ("id", "url", "description", "enabled", "previousSecretExpiresAt")
        assert {name: shown[name] for name in names} | {"events": set(shown["events"])} == {
            "id": webhook_id,
            "url": webhook.url,
            "events": webhook.events,
            "description": webhook.description,
            "enabled": webhook.enabled,
            "previousSecretExpiresAt": None if until is None else to_text(until),
        }


def outline(shown: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("webhookId", "eventId", "eventType", "projectId", "status", "reason")
    figures = ("attemptCount", "budget", "nextAttemptAt")
    was_delivered = shown["deliveredAt"] is not None
    return (*(shown[name] for name in (*names, *figures)), was_delivered)


def expected_outline(each: Delivery) -> tuple[Any, ...]:
    due = None if each.due is None else to_text(each.due)
    reported = (
        each.webhook_id,
        each.event_id,
        each.type,
        each.project_id,
        each.status,
        each.reason,
    )
    return (*reported, each.attempts, each.budget, due, each.was_delivered)


def _some(known: Mapping[str, T], number: int) -> tuple[str, T | None]:
    """One of them, or now and then one that does not exist."""
    if not known or number % 10 == 0:
        return UNKNOWN, None
    key = list(known)[number % len(known)]
    return key, known[key]


def _require_signed(seen: Seen, expected: Attempt) -> None:
    signatures = seen.headers["webhook-signature"].split(" ")
    assert len(signatures) == len(expected.secrets)
    for signature, secret in zip(signatures, expected.secrets, strict=True):
        headers = seen.headers | {"webhook-signature": signature}
        assert signature_fits(Seen(seen.at, "", headers, seen.body), [secret])
