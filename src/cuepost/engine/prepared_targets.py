"""A cache of what all attempts to one endpoint share: checked URL, request head and signing keys.

The key of an entry is everything that it is made of: the endpoint, its URL, and the sealed secrets
that are live. A changed URL, a new secret or an expired one gives another key, so no entry has to
be invalidated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.http_message import message_template
from cuepost.domain.receiver_url import ReceiverUrl, ReceiverUrlRefused, parse_receiver_url
from cuepost.domain.signing import Signer, SigningSecret
from cuepost.ports.system import SecretBox
from cuepost.ports.transport import Headers
from cuepost.tuning import PREPARED_TARGETS

_VARYING = ("webhook-id", "webhook-timestamp", "webhook-signature")


@dataclass(frozen=True, slots=True)
class PreparedTarget:
    """`url` is None if the egress policy forbids it."""

    url: ReceiverUrl | None
    template: bytes
    signers: Sequence[Signer]
    fixed: Headers

    def signed(self, event_id: UUID, timestamp: int, body: bytes) -> tuple[Headers, bytes]:
        """The headers of one request, and the complete request as it is sent."""
        identifier, second = str(event_id), str(timestamp)
        id_bytes, second_bytes = identifier.encode(), second.encode()
        content = b"%b.%b.%b" % (id_bytes, second_bytes, body)
        signatures = " ".join([signer.sign(content) for signer in self.signers])
        headers = (
            *self.fixed,
            ("webhook-id", identifier),
            ("webhook-timestamp", second),
            ("webhook-signature", signatures),
        )
        if not self.template:
            return headers, b""
        values = (id_bytes, second_bytes, signatures.encode(), len(body), body)
        return headers, self.template % values


class PreparedTargets:
    def __init__(self, box: SecretBox, policy: EgressPolicy, fixed: Headers) -> None:
        self._box = box
        self._policy = policy
        self._fixed = fixed
        self.of = lru_cache(PREPARED_TARGETS)(self._prepare)

    def _prepare(self, webhook_id: UUID, url: str, *sealed: bytes) -> PreparedTarget:
        owner = webhook_id.bytes
        signers = [Signer(SigningSecret(self._box.open(each, owner))) for each in sealed]
        # The policy may have become stricter since the endpoint was stored.
        try:
            allowed = parse_receiver_url(url, self._policy)
        except ReceiverUrlRefused:
            return PreparedTarget(None, b"", signers, self._fixed)
        if allowed.inbox is not None:
            return PreparedTarget(allowed, b"", signers, self._fixed)
        template = message_template(allowed, self._fixed, _VARYING)
        return PreparedTarget(allowed, template, signers, self._fixed)
