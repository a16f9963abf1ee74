"""Test inboxes, each with its newest messages."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.records import paging
from cuepost.adapters.storage.session import Records
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.inbox import Inbox, InboxAnswer, InboxMessage
from cuepost.domain.instants import instant_of
from cuepost.ports.records import Page

_ADD = Sql(
    """
    INSERT INTO inboxes (account_id, token, answer, created_at)
    VALUES (:account_id, :token, :answer, :created_at)
    ON CONFLICT (account_id) DO NOTHING
    """
)
_FROM_INBOXES = "SELECT account_id, token, answer, created_at FROM inboxes"
_OF_ACCOUNT = Sql(f"{_FROM_INBOXES} WHERE account_id = :account_id")
_BY_TOKEN = Sql(f"{_FROM_INBOXES} WHERE token = :token")
_SET_ANSWER = Sql("UPDATE inboxes SET answer = :answer WHERE account_id = :account_id")
_DELETE_OLDER = Sql(
    """
    DELETE FROM inbox_messages
    WHERE account_id = :account_id AND id < (
        SELECT id FROM inbox_messages WHERE account_id = :account_id
        ORDER BY id DESC LIMIT 1 OFFSET :newer
    )
    """
)
_MESSAGES = paging.pages(
    """
    SELECT account_id, id, headers, body, verified_with, answer
    FROM inbox_messages WHERE account_id = :account_id
    """
)
_CLEAR = Sql("DELETE FROM inbox_messages WHERE account_id = :account_id")


class InboxRecords(Records):
    async def add(self, inbox: Inbox) -> None:
        await self._session.execute(
            _ADD,
            account_id=inbox.account_id,
            token=inbox.token,
            answer=inbox.answer,
            created_at=inbox.created_at,
        )

    async def get(self, account_id: UUID) -> Inbox | None:
        return await self._one(_OF_ACCOUNT, account_id=account_id)

    async def by_token(self, token: str) -> Inbox | None:
        return await self._one(_BY_TOKEN, token=token)

    async def set_answer(self, account_id: UUID, answer: InboxAnswer) -> None:
        await self._session.execute(_SET_ANSWER, account_id=account_id, answer=answer)

    async def keep(self, message: InboxMessage, most: int) -> None:
        await self._session.insert(
            "inbox_messages",
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
        await self._session.execute(_DELETE_OLDER, account_id=message.account_id, newer=most - 1)

    async def messages(self, account_id: UUID, page: Page) -> list[InboxMessage]:
        rows = await self._session.offloaded.fetch(
            _MESSAGES, account_id=account_id, **paging.bounds(page)
        )
        return [_message(row) for row in rows]

    async def clear(self, account_id: UUID) -> None:
        await self._session.execute(_CLEAR, account_id=account_id)

    async def _one(self, statement: Sql, **values: Any) -> Inbox | None:
        rows = await self._session.fetch(statement, **values)
        if not rows:
            return None
        account_id, token, answer, created_at = rows[0]
        return Inbox(account_id, token, InboxAnswer(answer), created_at)


def _message(row: Sequence[Any]) -> InboxMessage:
    account_id, identifier, headers, body, verified_with, answer = row
    return InboxMessage(
        account_id=account_id,
        id=identifier,
        received_at=instant_of(identifier),
        headers=tuple((name, value) for name, value in json.loads(headers)),
        body=body,
        verified_with=tuple(verified_with.split()),
        answer=InboxAnswer(answer),
    )
