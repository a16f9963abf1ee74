"""Endpoints: made, changed, rotated, tested and deleted."""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from cuepost.domain.instants import to_text
from tests.model.caller import NUMBER, Caller
from tests.model.expected import (
    DEFAULT_EVENTS,
    EVENTS,
    MOST_ENDPOINTS,
    OVERLAP,
    Delivery,
    Webhook,
)

SUBSCRIPTIONS = st.one_of(
    st.none(), st.sets(st.sampled_from(sorted(EVENTS.values())), max_size=4).map(sorted)
)
NOWHERE = ("http://hooks.example.com/", "https://127.0.0.1/", "https://me:word@hooks.example.com/")


class WebhookRules(Caller):
    @rule(events=SUBSCRIPTIONS, described=st.booleans())
    def create_webhook(self, events: list[str] | None, described: bool) -> None:
        url, description = self.new_url(), "Für später ☎" if described else ""
        body = {"url": url, "events": events, "description": description}
        full = len(self.model.webhooks) >= MOST_ENDPOINTS
        why = self.closed() or ((409, "endpoint_limit_reached") if full else None)
        made = self.twice("/v1/webhooks", body, why)
        if why is None:
            chosen = set(events or DEFAULT_EVENTS)
            self.model.webhooks[made["id"]] = Webhook(url, chosen, description, made.pop("secret"))
            self.settle()
            self.require_webhook(made, made["id"])

    @rule(url=st.sampled_from(NOWHERE))
    def create_webhook_where_none_may_be(self, url: str) -> None:
        answer = self.call("POST", "/v1/webhooks", {"url": url})
        if not self.refused(answer, self.closed(), success=422):
            assert [each["field"] for each in answer.json()["errors"]] == ["url"]

    @rule(
        number=NUMBER,
        enabled=st.none() | st.booleans(),
        events=SUBSCRIPTIONS,
        moves=st.booleans(),
        stale=st.none() | st.booleans(),
    )
    def change_webhook(
        self,
        number: int,
        enabled: bool | None,
        events: list[str] | None,
        moves: bool,
        stale: bool | None,
    ) -> None:
        webhook_id, webhook = self.some_webhook(number)
        url, path = self.new_url() if moves else None, f"/v1/webhooks/{webhook_id}"
        wanted = {"enabled": enabled, "events": events, "url": url}
        body = {name: value for name, value in wanted.items() if value is not None}
        why = self.closed() or self.absence(webhook)
        answer = self.call("PATCH", path, body, headers=self.condition(path, stale, why))
        if self.refused(answer, why or ((412, "precondition_failed") if stale else None)):
            return
        assert webhook is not None
        webhook.url = url or webhook.url
        webhook.events = set(events or DEFAULT_EVENTS) if events is not None else webhook.events
        if webhook.enabled and enabled is False:
            self.model.stop("endpoint_disabled", webhook_id=webhook_id)
        webhook.enabled = webhook.enabled if enabled is None else enabled
        self.settle()
        self.require_webhook(answer.json(), webhook_id)
        self.require_version(path, webhook.state(webhook_id, self.service.now))

    @rule(number=NUMBER)
    def delete_webhook(self, number: int) -> None:
        webhook_id, webhook = self.some_webhook(number)
        answer = self.call("DELETE", f"/v1/webhooks/{webhook_id}")
        if not self.refused(answer, self.closed() or self.absence(webhook), success=204):
            del self.model.webhooks[webhook_id]
            self.model.deliveries = [
                each for each in self.model.deliveries if each.webhook_id != webhook_id
            ]
        self.settle()

    @rule(number=NUMBER)
    def rotate(self, number: int) -> None:
        webhook_id, webhook = self.some_webhook(number)
        answer = self.call("POST", f"/v1/webhooks/{webhook_id}/rotate-secret")
        why = self.closed() or self.absence(webhook)
        if why is None and webhook is not None and webhook.overlaps(self.service.now):
            why = (409, "rotation_overlap_active")
            assert webhook.previous_until is not None
            assert answer.json()["availableAt"] == to_text(webhook.previous_until)
        if self.refused(answer, why):
            return
        assert webhook is not None
        webhook.previous, webhook.previous_until = webhook.secret, self.service.now + OVERLAP
        webhook.secret = answer.json()["secret"]
        assert answer.json()["previousSecretExpiresAt"] == to_text(webhook.previous_until)
        assert webhook.secret != webhook.previous

    @rule(number=NUMBER)
    def end_overlap(self, number: int) -> None:
        webhook_id, webhook = self.some_webhook(number)
        answer = self.call("POST", f"/v1/webhooks/{webhook_id}/end-overlap")
        if not self.refused(answer, self.closed() or self.absence(webhook)):
            assert webhook is not None
            webhook.previous = webhook.previous_until = None
            self.require_webhook(answer.json(), webhook_id)
            state = webhook.state(webhook_id, self.service.now)
            self.require_version(f"/v1/webhooks/{webhook_id}", state)

    @rule(number=NUMBER)
    def send_test(self, number: int) -> None:
        webhook_id, webhook = self.some_webhook(number)
        answer = self.call("POST", f"/v1/webhooks/{webhook_id}/test")
        why = self.closed() or self.absence(webhook)
        if why is None and webhook is not None and not webhook.enabled:
            why = (409, "endpoint_disabled")
        if not self.refused(answer, why, success=202):
            event_id, now = answer.json()["eventId"], self.service.now
            self.model.deliveries.append(
                Delivery(webhook_id, event_id, None, "webhook.test", due=now)
            )
            self.model.events[event_id] = ("webhook.test", None)
        self.settle()
