"""The Retry-After of requests that are refused because of the state of the service."""

from cuepost.ports.system import Entropy

LEAST_SECONDS = 1
SPREAD_SECONDS = 4


def retry_after(entropy: Entropy, least: int = LEAST_SECONDS) -> int:
    """Random seconds from `least` to `least` + 4, so that clients do not all retry together."""
    return least + entropy(1)[0] % (SPREAD_SECONDS + 1)
