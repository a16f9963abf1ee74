"""Receives cuepost's webhooks: verifies them, handles each once and loses none."""

from cuepost_receiver.event import Event
from cuepost_receiver.handling import GiveUp, RetryPolicy
from cuepost_receiver.inbox import Answer, Inbox
from cuepost_receiver.refusal import Reason, VerificationFailed
from cuepost_receiver.stores.protocol import Claim, DeadLetter, InboxStore
from cuepost_receiver.stores.sqlite import SqliteStore
from cuepost_receiver.verification import Verified, verify

__all__ = [
    "Answer",
    "Claim",
    "DeadLetter",
    "Event",
    "GiveUp",
    "Inbox",
    "InboxStore",
    "Reason",
    "RetryPolicy",
    "SqliteStore",
    "VerificationFailed",
    "Verified",
    "verify",
]
__version__ = "0.2.0"
