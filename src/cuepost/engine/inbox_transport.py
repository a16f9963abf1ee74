"""Delivers to the test inbox through the store, without a network connection."""

from time import perf_counter

from cuepost.application.perform import Perform
from cuepost.application.receive_in_inbox import ReceiveInInbox
from cuepost.domain.attempt import Outcome, Timings
from cuepost.domain.errors import AccountMoved, AccountMoving
from cuepost.domain.inbox import InboxAnswer
from cuepost.ports.store import Contention, StoreUnavailable
from cuepost.ports.system import Clock
from cuepost.ports.transport import Exchange, Request, Transport

_JSON = (("content-type", "application/json"),)
_ANSWERS = {
    InboxAnswer.OK: (200, _JSON, b'{"received":true}'),
    InboxAnswer.NOT_FOUND: (404, _JSON, b'{"error":"no such path here"}'),
    InboxAnswer.SERVER_ERROR: (500, _JSON, b'{"error":"told to fail"}'),
    InboxAnswer.REDIRECT: (302, (("location", "https://example.com/moved"),), b""),
}


class InboxTransport:
    """Sends deliveries for the test inbox to the inbox, and all others by `outside`."""

    def __init__(
        self, outside: Transport, inbox: ReceiveInInbox, perform: Perform, clock: Clock
    ) -> None:
        self._outside = outside
        self._inbox = inbox
        self._perform = perform
        self._clock = clock
        # No connection to an inbox is ever open.
        self.start = outside.start

    async def send(self, request: Request) -> Exchange:
        if request.url.inbox is None:
            return await self._outside.send(request)
        began = perf_counter()
        answer = await self._deliver(request.url.inbox, request)
        if answer is InboxAnswer.SLOW:
            await self._clock.wait(request.timeout_seconds)
            return Exchange(request.timeout_seconds * 1000, Timings(), fault=Outcome.TIMEOUT)
        took = (perf_counter() - began) * 1000
        if answer is None or answer is InboxAnswer.CLOSE:
            return Exchange(took, Timings(), fault=Outcome.CONNECT_ERROR)
        status, headers, body = _ANSWERS[answer]
        timings = Timings(first_byte_ms=took)
        return Exchange(took, timings, status=status, headers=headers, body=body)

    async def _deliver(self, token: str, request: Request) -> InboxAnswer | None:
        try:
            return await self._perform.change(
                lambda transaction: self._inbox.take_in(
                    transaction, token, request.headers, request.body
                )
            )
        except (AccountMoving, AccountMoved, Contention, StoreUnavailable):
            return None
