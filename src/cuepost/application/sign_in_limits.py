"""How often somebody may try to sign in: counted per address and per e-mail, in each process."""

from collections import deque
from dataclasses import dataclass, field

from cuepost.domain.errors import TooManySignIns
from cuepost.ports.runtime import Clock

WINDOW_SECONDS = 15 * 60.0
MOST_PER_ADDRESS = 30
MOST_PER_EMAIL = 10
REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class SignInLimits:
    """Only what failed counts, so that an office behind one address is not locked out."""

    clock: Clock
    _failures: dict[str, deque[float]] = field(default_factory=dict)

    def require_patience(self, email: str, address: str | None) -> None:
        for key, most in _keys(email, address):
            if len(self._recent(key)) >= most:
                raise TooManySignIns

    def failed(self, email: str, address: str | None) -> None:
        if len(self._failures) >= REMEMBERED:
            self._failures.clear()
        for key, _ in _keys(email, address):
            self._failures.setdefault(key, deque()).append(self.clock.monotonic())

    def succeeded(self, email: str) -> None:
        self._failures.pop(f"email {email}", None)

    def _recent(self, key: str) -> "deque[float]":
        found, since = self._failures.get(key, deque()), self.clock.monotonic() - WINDOW_SECONDS
        while found and found[0] <= since:
            found.popleft()
        return found


def _keys(email: str, address: str | None) -> tuple[tuple[str, int], ...]:
    return (f"email {email}", MOST_PER_EMAIL), (f"address {address}", MOST_PER_ADDRESS)
