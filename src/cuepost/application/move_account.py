"""Moves an account to another database, in steps that can each be repeated after a crash.

At the source: `start`, `settle`, `export`, and after the import `finish`. At the destination:
`load`, then `release` with the code that `finish` returns. The code is given out only when the
account has ended at the source, so there are never two live copies.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from cuepost.application.account_file import AccountFileReader, AccountFileWriter, Head
from cuepost.application.audit_trail import AuditTrail
from cuepost.application.perform import OPERATOR, Perform
from cuepost.domain.access import Account, AccountState, Caller
from cuepost.domain.audit import Action
from cuepost.domain.errors import MoveRefused, NotFound
from cuepost.ports.moves import CannotBeRead, Chunk, Move
from cuepost.ports.store import KeyTaken, Transaction
from cuepost.ports.system import Clock, Entropy, IdSource, SecretBox

CODE_BYTES = 16
ROWS_AT_ONCE = 5_000
PURGED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class MoveAccount:
    perform: Perform
    clock: Clock
    ids: IdSource
    entropy: Entropy
    box: SecretBox
    audit: AuditTrail

    async def start(self, caller: Caller, account_id: UUID) -> None:
        """Stop all changes of the account; starting a second time continues the same move."""

        async def mark(transaction: Transaction) -> None:
            account = await _locked(transaction, account_id)
            if account.state is AccountState.LEAVING:
                return
            account.require_live()
            code, now = self.entropy(CODE_BYTES).hex(), self.clock.now()
            await self.audit.note(transaction, caller, Action.MOVE_STARTED, account_id, account_id)
            await transaction.moves.put(Move(account_id, _digest(code), now, code))
            await transaction.moves.set_state(account_id, AccountState.LEAVING)

        await self.perform.change(mark)

    async def settle(self, account_id: UUID) -> int:
        """Do one step; return how many deliveries are still leased. At 0 `export` can begin."""

        async def step(transaction: Transaction) -> int:
            now = await transaction.queue.time(self.clock.now())
            await transaction.queue.remove_dead_workers(now)
            await transaction.moves.park(account_id)
            left = await transaction.moves.unparked(account_id)
            if not left and await transaction.moves.has_deleted_endpoints(account_id):
                # The history of deleted endpoints is not exported.
                await transaction.endpoints.purge_deleted(PURGED_AT_ONCE)
                return 1
            return left

        return await self.perform.change(step)

    async def export(self, account_id: UUID, write: Callable[[bytes], object]) -> int:
        """Write the file line by line; return the number of rows."""
        file = AccountFileWriter(write)
        async with self.perform.store.snapshot() as transaction:
            account = await transaction.accounts.get(account_id)
            move = await transaction.moves.get(account_id)
            if account is None or move is None or account.state is not AccountState.LEAVING:
                raise MoveRefused("The account is not being exported; start its export again.")
            if await transaction.moves.unparked(account_id):
                raise MoveRefused("Deliveries of the account are still being sent; try again.")
            sealed_under = await transaction.moves.sealed_under(account_id)
            keys = frozenset(each.hex() for each in sealed_under)
            file.head(Head(account, transaction.moves.revision, move.digest, keys))
            async for chunk in transaction.moves.chunks(account_id):
                file.chunk(chunk)
        file.end()
        return file.rows

    async def finish(self, caller: Caller, account_id: UUID) -> str:
        """End the account here; return the code that releases its copy."""

        async def mark(transaction: Transaction) -> str:
            account = await _locked(transaction, account_id)
            if account.state not in (AccountState.LEAVING, AccountState.MOVED):
                raise MoveRefused("The account was not exported from here.")
            move = await transaction.moves.get(account_id)
            assert move is not None
            assert move.code is not None
            if account.state is AccountState.LEAVING:
                await transaction.moves.set_state(account_id, AccountState.MOVED)
                await self.audit.note(transaction, caller, Action.MOVED, OPERATOR, account_id)
            return move.code

        return await self.perform.change(mark)

    async def forget_step(self, account_id: UUID) -> bool:
        """Erase a part of an account that has moved; return True once all is erased.

        What is needed to refuse its requests is kept, and so are the files of its exports, because
        the copy refers to them.
        """

        async def step(transaction: Transaction) -> bool:
            account = await _locked(transaction, account_id)
            if account.state is not AccountState.MOVED:
                raise MoveRefused("The account has not moved.")
            return await transaction.moves.erase_some(account_id, ROWS_AT_ONCE, refusing=True)

        return await self.perform.change(step)

    async def load(self, lines: Iterable[bytes]) -> Account:
        """Load the account from a file; it is not live until `release`.

        What an interrupted import has left is removed first.
        """
        file, source = AccountFileReader(), iter(lines)
        head = file.head(next(source, b""))
        await self._require_fitting(head)
        run_id = await self._begin(head)
        for line in source:
            chunk = file.chunk(line)
            if chunk is not None:
                await self._load_chunk(head.account.id, run_id, chunk)
        if not file.is_complete:
            raise MoveRefused("The file is damaged or not complete; export the account again.")

        async def loaded(transaction: Transaction) -> None:
            await _require_run(transaction, head.account.id, run_id)
            move = await transaction.moves.get(head.account.id)
            assert move is not None
            await transaction.moves.put(replace(move, run_id=None))

        await self.perform.change(loaded)
        return head.account

    async def release(self, caller: Caller, account_id: UUID, code: str) -> None:
        """Make the copy live; does nothing if it is live already."""

        async def act(transaction: Transaction) -> None:
            account = await _locked(transaction, account_id)
            if account.state is AccountState.LIVE:
                return
            move = await transaction.moves.get(account_id)
            if account.state is not AccountState.ARRIVING or move is None:
                raise MoveRefused("The account was not loaded here.")
            if move.run_id is not None:
                raise MoveRefused("The account is not loaded completely; import its file again.")
            if not hmac.compare_digest(move.digest, _digest(code)):
                raise MoveRefused("This is not the code that releases this copy.")
            await transaction.moves.unpark(account_id)
            await transaction.moves.end(account_id)
            await transaction.moves.set_state(account_id, AccountState.LIVE)
            await self.audit.note(transaction, caller, Action.ARRIVED, account_id, account_id)

        await self.perform.change(act)

    async def abort(self, caller: Caller, account_id: UUID) -> AccountState:
        """Abort the move: at the source the account is live again, at the destination it is erased.

        Returns the state that it was in. Files that were exported before can no longer be released.
        """

        async def act(transaction: Transaction) -> AccountState:
            account = await _locked(transaction, account_id)
            if account.state is AccountState.LEAVING:
                await transaction.moves.unpark(account_id)
                await transaction.moves.end(account_id)
                await transaction.moves.set_state(account_id, AccountState.LIVE)
                await self.audit.note(
                    transaction, caller, Action.MOVE_ABORTED, account_id, account_id
                )
            elif account.state is AccountState.ARRIVING:
                # An import that is still running stops when it finds no move.
                await transaction.moves.end(account_id)
            else:
                raise MoveRefused("The account is not moving.")
            return account.state

        async def erase(transaction: Transaction) -> bool:
            account = await _locked(transaction, account_id)
            has_begun_again = await transaction.moves.get(account_id) is not None
            if account.state is not AccountState.ARRIVING or has_begun_again:
                raise MoveRefused("Another import of the account has begun.")
            return await transaction.accounts.erase_some(account_id, ROWS_AT_ONCE)

        state = await self.perform.change(act)
        while state is AccountState.ARRIVING and not await self.perform.change(erase):
            pass
        return state

    async def _require_fitting(self, head: Head) -> None:
        revision = await self.perform.read(_revision)
        if head.revision != revision:
            raise MoveRefused(
                f"The file is of schema {head.revision}, this database has {revision}; "
                "bring both databases to the same version of cuepost."
            )
        missing = head.master_keys - {each.hex() for each in self.box.key_ids}
        if missing:
            keys = ", ".join(sorted(missing))
            raise MoveRefused(
                f"Secrets in the file are sealed under the master key {keys}, "
                "which CUEPOST_MASTER_KEY does not have; add it after the first one."
            )

    async def _begin(self, head: Head) -> UUID:
        account, now = head.account, self.clock.now()
        run_id = self.ids(now)

        async def begin(transaction: Transaction) -> None:
            known = await transaction.moves.lock(account.id)
            if known is not None and known.state in (AccountState.LIVE, AccountState.LEAVING):
                raise MoveRefused("The account is in this database already.")
            await _require_free_external_id(transaction, account)
            await transaction.moves.receive(account)
            await transaction.moves.put(Move(account.id, head.digest, now, run_id=run_id))

        async def clear(transaction: Transaction) -> bool:
            await _require_run(transaction, account.id, run_id)
            return await transaction.moves.erase_some(account.id, ROWS_AT_ONCE, refusing=False)

        await self.perform.change(begin)
        while not await self.perform.change(clear):
            pass
        return run_id

    async def _load_chunk(self, account_id: UUID, run_id: UUID, chunk: Chunk) -> None:
        async def load(transaction: Transaction) -> None:
            await _require_run(transaction, account_id, run_id)
            await transaction.moves.load(account_id, chunk)

        try:
            await self.perform.change(load)
        except CannotBeRead as error:
            raise MoveRefused(f"{error} Was the file written by another version?") from error
        except KeyTaken as error:
            raise MoveRefused(
                f"Rows of {chunk.table} are in this database already, in another account; "
                "perhaps one of its users has the same e-mail."
            ) from error


async def _revision(transaction: Transaction) -> str:
    return transaction.moves.revision


async def _locked(transaction: Transaction, account_id: UUID) -> Account:
    account = await transaction.moves.lock(account_id)
    if account is None:
        raise NotFound
    return account


async def _require_free_external_id(transaction: Transaction, account: Account) -> None:
    if account.external_id is None:
        return
    holder = await transaction.accounts.by_external_id(account.external_id)
    if holder is not None and holder.id != account.id:
        raise MoveRefused(
            f"Another account of this database has the external id {account.external_id}."
        )


async def _require_run(transaction: Transaction, account_id: UUID, run_id: UUID) -> None:
    if not await transaction.moves.is_loaded_by(account_id, run_id):
        raise MoveRefused("Another import of the account has begun, or it was aborted.")


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.strip().lower().encode()).digest()
