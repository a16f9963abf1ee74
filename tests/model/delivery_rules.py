"""Deliveries: listed, sent again, and hidden from strangers."""

from collections import Counter
from datetime import UTC, datetime

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from cuepost.domain.instants import to_text
from tests.interfaces.rest.client import problem
from tests.model.caller import NUMBER, Caller, Refusal, expected_outline, outline
from tests.model.expected import ENDED, Delivery

YEAR_2000, YEAR_2100 = (datetime(year, 1, 1, tzinfo=UTC) for year in (2000, 2100))


class DeliveryRules(Caller):
    @precondition(lambda self: self.model.deliveries and self.model.open)
    @rule(number=NUMBER)
    def retry(self, number: int) -> None:
        delivery = self.model.deliveries[number % len(self.model.deliveries)]
        webhook, event_id = delivery.webhook_id, delivery.event_id
        [shown] = self.read(f"/v1/webhooks/{webhook}/deliveries?eventId={event_id}")["data"]
        answer = self.call("POST", f"/v1/webhooks/{webhook}/deliveries/{shown['id']}/retry")
        possible = self.reasons_against(delivery)
        if possible:
            assert problem(answer) in possible
        else:
            assert answer.status_code == 202, answer.text
            assert (answer.json()["status"], answer.json()["budget"]) == (
                "pending",
                delivery.budget + 1,
            )
            delivery.send_again(self.service.now)
        self.settle()

    @precondition(lambda self: self.model.open)
    @rule(number=NUMBER, include_delivered=st.booleans())
    def count_what_a_bulk_retry_would_send(self, number: int, include_delivered: bool) -> None:
        webhook_id, webhook = self.some_webhook(number)
        body = {
            "since": to_text(YEAR_2000),
            "until": to_text(YEAR_2100),
            "includeDelivered": include_delivered,
            "dryRun": True,
        }
        answer = self.call("POST", f"/v1/webhooks/{webhook_id}/retries", body)
        why = self.absence(webhook)
        if why is None and webhook is not None and not webhook.enabled:
            why = (409, "endpoint_disabled")
        if not self.refused(answer, why, success=202):
            wanted = [
                each
                for each in self.model.deliveries
                for status in ("failed", "cancelled")
                if each.webhook_id == webhook_id
                and each.is_chosen_by(status, include_delivered=include_delivered)
            ]
            assert answer.json()["count"] == len(wanted)

    @rule(
        limit=st.integers(1, 100),
        status=st.sampled_from((None, *sorted(ENDED), "retrying")),
        include_delivered=st.booleans(),
    )
    def list_deliveries(self, limit: int, status: str | None, include_delivered: bool) -> None:
        if not self.model.open:
            assert problem(self.call("GET", "/v1/deliveries")) == (403, "webhooks_not_enabled")
            return
        chosen = f"&status={status}" if status else ""
        chosen += "&includeDelivered=true" if include_delivered else ""
        shown = self.all_of(f"/v1/deliveries?limit={limit}{chosen}")
        wanted = [
            each
            for each in self.model.deliveries
            if each.is_chosen_by(status, include_delivered=include_delivered)
        ]
        assert Counter(map(outline, shown)) == Counter(map(expected_outline, wanted))
        assert [each["id"] for each in shown] == sorted((e["id"] for e in shown), reverse=True)

    @rule(number=NUMBER)
    def look_at_what_is_one_s_own(self, number: int) -> None:
        project_id, project = self.some_project(number)
        answer = self.call("GET", f"/v1/projects/{project_id}")
        if not self.refused(answer, self.absence(project)):
            self.require_project(answer.json(), project_id)
        webhook_id, webhook = self.some_webhook(number)
        answer = self.call("GET", f"/v1/webhooks/{webhook_id}")
        if not self.refused(answer, self.closed() or self.absence(webhook)):
            self.require_webhook(answer.json(), webhook_id)

    @rule(number=NUMBER)
    def a_stranger_sees_nothing(self, number: int) -> None:
        key = self.service.running.stranger
        for path, found in (
            (f"/v1/webhooks/{self.some_webhook(number)[0]}", None),
            (f"/v1/projects/{self.some_project(number)[0]}", None),
            ("/v1/deliveries", []),
            ("/v1/events", []),
        ):
            answer = self.service.call("GET", path, key=key)
            if found is None:
                assert problem(answer) == (404, "not_found")
            else:
                assert answer.json() == {"data": found, "nextCursor": None}

    def reasons_against(self, delivery: Delivery) -> set[Refusal]:
        """Any of them may be told."""
        found: set[Refusal] = set()
        if not self.model.webhooks[delivery.webhook_id].enabled:
            found.add((409, "endpoint_disabled"))
        if delivery.is_live:
            found.add((409, "delivery_in_progress"))
        project = self.model.projects.get(delivery.project_id or "")
        if project is not None and (project.deleted or project.has_expired(self.service.now)):
            found.add((409, "project_not_eligible"))
        return found
