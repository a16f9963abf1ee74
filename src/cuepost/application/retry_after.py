"""When a caller may come back that was turned away because of the state of the service."""

from cuepost.ports.system import Entropy

LEAST_SECONDS = 1
SPREAD_SECONDS = 4


def retry_after(entropy: Entropy, least: int = LEAST_SECONDS) -> int:
    """Seconds from `least` to four more, by chance: those turned away together come back apart."""
    return least + entropy(1)[0] % (SPREAD_SECONDS + 1)
