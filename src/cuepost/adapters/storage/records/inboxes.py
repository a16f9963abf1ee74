"""Test inboxes, each with its newest messages."""

import json
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records.paging import newest_first
from cuepost.adapters.storage.session import Session, first, upsert
from cuepost.adapters.storage.tables import inbox_messages, inboxes
from cuepost.domain.ids import instant_of
from cuepost.domain.inbox import Inbox, InboxAnswer, InboxMessage
from cuepost.ports.records import Page


class InboxRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, inbox: Inbox) -> None:
        await self._session.run(
            upsert(self._session, inboxes)
            .values(
                account_id=inbox.account_id,
                token=inbox.token,
                answer=inbox.answer,
                created_at=inbox.created_at,
            )
            .on_conflict_do_nothing(index_elements=["account_id"])
        )

    async def get(self, account_id: UUID) -> Inbox | None:
        return await self._one(inboxes.c.account_id == account_id)

    async def by_token(self, token: str) -> Inbox | None:
        return await self._one(inboxes.c.token == token)

    async def set_answer(self, account_id: UUID, answer: InboxAnswer) -> None:
        await self._session.run(
            sa.update(inboxes).where(inboxes.c.account_id == account_id).values(answer=answer)
        )

    async def keep(self, message: InboxMessage, most: int) -> None:
        await self._session.insert(
            inbox_messages,
            [
                {
                    "account_id": message.account_id,
                    "id": message.id,
                    "headers": json.dumps(message.headers).encode(),
                    "body": message.body,
                    "verified_with": " ".join(message.verified_with),
                    "answer": message.answer,
                }
            ],
        )
        oldest_kept = (
            _messages(message.account_id)
            .with_only_columns(inbox_messages.c.id)
            .order_by(inbox_messages.c.id.desc())
            .offset(most - 1)
            .limit(1)
            .scalar_subquery()
        )
        await self._session.run(
            sa.delete(inbox_messages).where(
                inbox_messages.c.account_id == message.account_id,
                inbox_messages.c.id < oldest_kept,
            )
        )

    async def messages(self, account_id: UUID, page: Page) -> list[InboxMessage]:
        rows = await self._session.all(
            newest_first(_messages(account_id), inbox_messages.c.id, page)
        )
        return [_message(row) for row in rows]

    async def clear(self, account_id: UUID) -> None:
        await self._session.run(
            sa.delete(inbox_messages).where(inbox_messages.c.account_id == account_id)
        )

    async def _one(self, condition: sa.ColumnElement[bool]) -> Inbox | None:
        row = await first(self._session, sa.select(inboxes).where(condition))
        if row is None:
            return None
        return Inbox(row.account_id, row.token, InboxAnswer(row.answer), row.created_at)


def _messages(account_id: UUID) -> sa.Select[Any]:
    return sa.select(inbox_messages).where(inbox_messages.c.account_id == account_id)


def _message(row: sa.Row[Any]) -> InboxMessage:
    return InboxMessage(
        account_id=row.account_id,
        id=row.id,
        received_at=instant_of(row.id),
        headers=tuple((name, value) for name, value in json.loads(row.headers)),
        body=row.body,
        verified_with=tuple(row.verified_with.split()),
        answer=InboxAnswer(row.answer),
    )
