"""E-mails: what they say, and when one that could not be sent is tried again."""

from dataclasses import dataclass
from datetime import timedelta

FIRST_RETRY = timedelta(seconds=10)
LONGEST_RETRY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Message:
    subject: str
    text: str

    def __repr__(self) -> str:
        return f"Message({self.subject!r})"


def mail_retry_after(attempts_made: int) -> timedelta:
    """Longer each time, from the number of attempts that were made."""
    doublings = min(attempts_made, 16)
    return min(FIRST_RETRY * (1 << doublings), LONGEST_RETRY)
