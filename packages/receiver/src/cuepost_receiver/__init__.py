"""The receiver's side of cuepost's webhooks: verified, once each, and never lost."""

from cuepost_receiver.event import Event
from cuepost_receiver.refusal import Reason, VerificationFailed
from cuepost_receiver.verification import Verified, verify

__all__ = ["Event", "Reason", "VerificationFailed", "Verified", "verify"]
__version__ = "0.1.0"
