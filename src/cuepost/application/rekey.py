"""Master keys: which are in use, and re-encrypting values so that an old one can be retired."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from cuepost.application.perform import SEAL_CONTEXT, Perform
from cuepost.ports.sealed import SealedKind, SealedValue
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, SecretBox

AT_ONCE = 200
KEPT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class KeysInUse:
    """How many values are sealed under each master key, by the key's id in hexadecimal digits."""

    newest: str
    counts: Mapping[str, int]
    unknown: frozenset[str]

    @property
    def lost(self) -> int:
        """The number of values that no configured master key can decrypt."""
        return sum(self.counts[each] for each in self.unknown)

    @property
    def older(self) -> int:
        """The number of values that have to be sealed with the newest key."""
        return sum(self.counts.values()) - self.counts.get(self.newest, 0) - self.lost


@dataclass(slots=True)
class _Memory:
    until: float = -inf
    found: KeysInUse | None = None


@dataclass(frozen=True, slots=True)
class Rekey:
    perform: Perform
    clock: Clock
    box: SecretBox
    _memory: _Memory = field(default_factory=_Memory, repr=False)

    async def keys_in_use(self) -> KeysInUse:
        return await self._look(tuple(SealedKind))

    async def keys_of_secrets(self) -> KeysInUse:
        """Only of signing secrets, and cached for half a minute: for periodic checks."""
        memory, now = self._memory, self.clock.monotonic()
        if memory.found is None or now >= memory.until:
            memory.found = await self._look((SealedKind.SIGNING_SECRET,))
            memory.until = now + KEPT_SECONDS
        return memory.found

    async def step(self) -> int:
        """Seal some values with the newest key; return how many were tried, 0 once none is left.

        Each step is one transaction, so rekeying can be interrupted at any point. A value that is
        changed concurrently is left to the next step.
        """
        old = self.box.key_ids[1:]
        values = await self.perform.read(
            lambda transaction: transaction.sealed.some_under(old, AT_ONCE)
        )
        renewed = [(value, self._renewed(value)) for value in values]

        async def write(transaction: Transaction) -> None:
            for value, sealed in renewed:
                await transaction.sealed.replace(value, sealed)

        if renewed:
            await self.perform.change(write)
        return len(renewed)

    def _renewed(self, value: SealedValue) -> bytes:
        is_answer = value.kind is SealedKind.IDEMPOTENT_ANSWER
        context = SEAL_CONTEXT if is_answer else value.owner.bytes
        return self.box.seal(self.box.open(value.sealed, context), context)

    async def _look(self, kinds: tuple[SealedKind, ...]) -> KeysInUse:
        counts = await self.perform.read(lambda transaction: transaction.sealed.counts(kinds))
        known = {each.hex() for each in self.box.key_ids}
        shown = {each.hex(): count for each, count in counts.items()}
        return KeysInUse(self.box.key_ids[0].hex(), shown, frozenset(set(shown) - known))
