"""Erases an account in steps: first the files of its exports, then all its rows."""

from dataclasses import dataclass
from uuid import UUID

from cuepost.application.perform import Perform
from cuepost.domain.errors import NotFound
from cuepost.ports.media import MediaFiles
from cuepost.ports.store import Transaction

FILES_AT_ONCE = 100
ROWS_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class EraseAccount:
    perform: Perform
    files: MediaFiles

    async def step(self, account_id: UUID, rows: int = ROWS_AT_ONCE) -> bool:
        """Erase a part of the account; return True once nothing is left.

        Files are removed before the rows that name them, so that an interruption leaves none.
        """
        files = await self.perform.read(
            lambda transaction: transaction.projects.files_to_erase(account_id, FILES_AT_ONCE)
        )
        for keys in files.values():
            for key in keys:
                await self.files.remove(key)

        async def erase(transaction: Transaction) -> bool:
            if await transaction.accounts.get(account_id) is None:
                raise NotFound
            await transaction.projects.replace_artifacts(
                {(account_id, project_id): () for project_id in files}
            )
            return not files and await transaction.accounts.erase_some(account_id, rows)

        return await self.perform.change(erase)
