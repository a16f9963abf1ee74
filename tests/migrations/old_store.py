"""What a service of an earlier release has left in its store, written as that release wrote it.

Ids of history are as old as they say, because history leaves by its age.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.domain.instants import compose, to_millis, to_text
from tests.migrations import old_values as old
from tests.migrations.plain_sql import insert

Row = dict[str, Any]

# The hints are those that its migration has left of the ones from before.
_SINCE_0006: dict[str, Row] = {
    "idempotency_keys": {"key_id": old.fixed(0x21)},
    "signing_secrets": {"hint": "whsec_…Hh8"},
    "inbox_messages": {"verified_with": "whsec_…Hh8"},
}


@dataclass(frozen=True, slots=True)
class OldStore:
    """Deliveries by what had become of them when the release was stopped."""

    now: datetime
    receiver_url: str

    @property
    def happened_at(self) -> datetime:
        return self.now - timedelta(minutes=10)

    @property
    def deliveries(self) -> dict[str, UUID]:
        names = ("delivered", "failed", "cancelled", "pending", "retrying", "delivering")
        return {name: self.history_id(0x100 + place) for place, name in enumerate(names)}

    def event_of(self, name: str) -> UUID:
        return self.history_id(0x200 + list(self.deliveries).index(name))

    def body_of(self, name: str) -> bytes:
        """As it was frozen when the event happened."""
        return (
            f'{{"id":"{self.event_of(name)}","type":"project.completed",'
            f'"createdAt":"{to_text(self.happened_at)}","data":{{'
            f'"projectId":"{old.PROJECT}","status":"completed","stage":"export",'
            f'"resultUrl":"https://captions.example.com/v1/projects/{old.PROJECT}/result"}}}}'
        ).encode()

    def history_id(self, number: int) -> UUID:
        return compose(to_millis(self.happened_at), number)

    def fill(self, connection: sa.Connection) -> None:
        inspector = sa.inspect(connection)
        known = inspector.get_table_names()
        columns = {each["name"] for each in inspector.get_columns("idempotency_keys")}
        changes = _SINCE_0006 if "key_id" in columns else {}
        for table, row in (*self._records(), *self._history(), *self._people()):
            if table in known:
                insert(connection, table, row | changes.get(table, {}))

    def _records(self) -> Iterator[tuple[str, Row]]:
        before = self.now - timedelta(days=3)
        named = {"name": "Harbour Films", "webhooks_enabled": True, "created_at": before}
        yield "accounts", {"id": old.ACCOUNT, **named}
        for key, number, account, scopes, revoked in (
            (old.API_KEY, 0x21, old.ACCOUNT, old.SCOPES, None),
            (old.SERVICE_KEY, 0x22, None, "milestones:report", None),
            (old.REVOKED_KEY, 0x23, old.ACCOUNT, old.SCOPES, before),
        ):
            yield "api_keys", self._key(key, number, account, scopes, revoked)
        yield "endpoints", self._endpoint(old.ENDPOINT, enabled=True)
        yield "endpoints", self._endpoint(old.DISABLED, enabled=False)
        for webhook, version, name, hint, expires in (
            (old.ENDPOINT, 1, "previous", old.PREVIOUS_SECRET, self.now + timedelta(hours=12)),
            (old.ENDPOINT, 2, "current", old.SECRET, None),
            (old.DISABLED, 1, "idle", old.SECRET, None),
        ):
            yield (
                "signing_secrets",
                _of_account(
                    webhook_id=webhook,
                    version=version,
                    sealed=bytes.fromhex(old.SEALED[name]),
                    hint=f"whsec_…{hint[-4:]}",
                    created_at=before,
                    expires_at=expires,
                ),
            )
        yield "projects", self._project()
        yield from self._guards()

    def _guards(self) -> Iterator[tuple[str, Row]]:
        yield (
            "reports",
            _of_account(
                report_id=old.REPORT_ID,
                event_id=self.event_of("delivered"),
                notified=True,
                reason=None,
                created_at=self.happened_at,
            ),
        )
        yield (
            "idempotency_keys",
            _of_account(
                key=old.IDEMPOTENCY_KEY,
                fingerprint=bytes.fromhex(old.DIGESTS[old.IDEMPOTENCY_KEY]),
                sealed_answer=bytes.fromhex(old.SEALED["answer"]),
                created_at=self.happened_at,
            ),
        )
        yield (
            "audit_entries",
            _of_account(
                id=self.history_id(0x300),
                action="webhook.created",
                actor=f"key:{old.fixed(0x21)}",
                door="rest",
                address="2001:db8::1",
                subject=str(old.ENDPOINT),
                details=json.dumps({"url": self.receiver_url}),
            ),
        )

    def _history(self) -> Iterator[tuple[str, Row]]:
        for name, status, reason, attempts in (
            ("delivered", "delivered", None, 1),
            ("failed", "failed", None, 3),
            ("cancelled", "cancelled", "endpoint_disabled", 0),
            ("pending", None, None, 0),
            ("retrying", None, None, 1),
            ("delivering", None, None, 0),
        ):
            yield "events", self._event(name)
            yield "deliveries", self._delivery(name, status, reason, attempts)
            if status is None:
                yield "queue", self._queued(name, attempts)
            for number in range(1, attempts + 1):
                yield "attempts", self._attempt(name, number, well=status == "delivered")
        # The process that had claimed it was killed with the machine.
        dead = old.fixed(0x51)
        yield "workers", {"id": dead, "alive_until": self.now - timedelta(minutes=9)}
        yield "lanes", {"webhook_id": old.ENDPOINT, "worker_id": dead}

    def _people(self) -> Iterator[tuple[str, Row]]:
        yield (
            "users",
            _of_account(
                id=old.USER,
                email="jo@example.com",
                password_hash=old.PASSWORD_HASH,
                created_at=self.now - timedelta(days=3),
            ),
        )
        yield (
            "sessions",
            _of_account(
                id=old.fixed(0x42),
                user_id=old.USER,
                digest=bytes.fromhex(old.DIGESTS[old.SESSION_COOKIE]),
                created_at=self.now - timedelta(days=3),
                expires_at=self.now + timedelta(days=11),
            ),
        )
        yield (
            "inboxes",
            _of_account(
                token=old.INBOX_TOKEN, answer="ok", created_at=self.now - timedelta(days=3)
            ),
        )
        yield (
            "inbox_messages",
            _of_account(
                id=self.history_id(0x400),
                headers=json.dumps([["webhook-id", "from-before"]]).encode(),
                body=old.INBOX_BODY,
                verified_with="whsec_…Hh8=",
                answer="ok",
            ),
        )

    def _key(
        self, key: str, number: int, account: UUID | None, scopes: str, revoked: datetime | None
    ) -> Row:
        return {
            "id": old.fixed(number),
            "account_id": account,
            "name": "First key",
            "digest": bytes.fromhex(old.DIGESTS[key]),
            "scopes": scopes,
            "created_at": self.now - timedelta(days=3),
            "expires_at": None,
            "revoked_at": revoked,
            "last_used_at": None,
        }

    def _endpoint(self, webhook_id: UUID, *, enabled: bool) -> Row:
        return _of_account(
            id=webhook_id,
            url=self.receiver_url,
            events="project.completed project.failed",
            description="The editing suite",
            enabled=enabled,
            created_at=self.now - timedelta(days=3),
            updated_at=self.now - timedelta(days=2),
            last_delivered_at=self.happened_at if enabled else None,
            failing_since=None,
            deleted_at=None,
        )

    def _project(self) -> Row:
        return _of_account(
            id=old.PROJECT,
            name="Trailer",
            kind="video",
            origin="api",
            status="completed",
            stage="export",
            access_expires_at=None,
            created_at=self.now - timedelta(days=3),
            updated_at=self.happened_at,
            deleted_at=None,
            access_ended_at=None,
        )

    def _event(self, name: str) -> Row:
        return _of_account(
            id=self.event_of(name),
            type="project.completed",
            project_id=old.PROJECT,
            occurred_at=self.happened_at,
            body=self.body_of(name),
            reason=None,
        )

    def _delivery(self, name: str, status: str | None, reason: str | None, attempts: int) -> Row:
        return _of_account(
            id=self.deliveries[name],
            webhook_id=old.ENDPOINT,
            event_id=self.event_of(name),
            event_type="project.completed",
            project_id=old.PROJECT,
            trigger="automatic",
            final_status=status,
            reason=reason,
            attempt_count=attempts,
            budget=1,
            finished_at=self.now - timedelta(minutes=9) if status else None,
        )

    def _queued(self, name: str, attempts: int) -> Row:
        return _of_account(
            delivery_id=self.deliveries[name],
            webhook_id=old.ENDPOINT,
            event_id=self.event_of(name),
            state=name,
            due_at=self.now - timedelta(minutes=9),
            trigger="automatic",
            budget=1,
            attempts_made=attempts,
            attempt_count=attempts,
            lease_token=old.fixed(0x51) if name == "delivering" else None,
            stop_reason=None,
        )

    def _attempt(self, name: str, number: int, *, well: bool) -> Row:
        return _of_account(
            delivery_id=self.deliveries[name],
            budget=1,
            number=number,
            trigger="automatic",
            started_at=self.now - timedelta(minutes=10 - number),
            duration_ms=12.5,
            dns_ms=1.5,
            connect_ms=2.25,
            tls_ms=4.0,
            first_byte_ms=4.5,
            signed_with="whsec_…Hh8= whsec_…Pj8=",
            request_headers=json.dumps([["webhook-id", str(self.event_of(name))]]).encode(),
            response_status=200 if well else 503,
            response_headers=b'[["content-type","text/plain"]]',
            response_body=b"ok" if well else b"later",
            response_truncated=False,
            outcome="delivered" if well else "http_error",
        )


def _of_account(**columns: Any) -> Row:
    return {"account_id": old.ACCOUNT, **columns}
