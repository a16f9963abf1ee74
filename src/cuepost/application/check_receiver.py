"""What would become of a receiver URL, said while it is being typed."""

import asyncio
from dataclasses import dataclass

from cuepost.domain.access import Caller, Scope
from cuepost.domain.egress_policy import EgressPolicy, Verdict, judge_answers
from cuepost.domain.receiver_url import ReceiverUrl, ReceiverUrlRefused, parse_receiver_url
from cuepost.ports.transport import CannotResolve, Resolver

# A look-up takes no longer, and one that leads nowhere not less either: the time would tell.
LOOK_UP_SECONDS = 1.5
# One sentence for a name that nobody knows and for one that leads somewhere private: which of the
# two it is, is not for whoever types names here.
NOT_REACHED = "This name does not lead to a public address now; check its spelling and its DNS."


@dataclass(frozen=True, slots=True)
class UrlVerdict:
    """`code` is empty where nothing speaks against the URL; `url` is the form that is stored."""

    fits: bool
    sentence: str
    url: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class CheckReceiver:
    policy: EgressPolicy
    resolver: Resolver

    async def check(self, caller: Caller, url: str) -> UrlVerdict:
        caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        try:
            parsed = parse_receiver_url(url.strip(), self.policy)
        except ReceiverUrlRefused as refused:
            return UrlVerdict(False, str(refused), code=refused.code)
        if parsed.inbox is not None:
            return UrlVerdict(True, "This is the test inbox; it needs no server.", parsed.text)
        if parsed.address is None and not await self._leads_somewhere(parsed):
            return UrlVerdict(False, NOT_REACHED, parsed.text, "host_not_reached")
        return UrlVerdict(True, "HTTPS, a port that is open, and a public address.", parsed.text)

    async def _leads_somewhere(self, url: ReceiverUrl) -> bool:
        """False takes the whole time, whatever was found."""
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                if await self._is_public(url):
                    return True
                await asyncio.Event().wait()
        except TimeoutError:
            pass
        return False

    async def _is_public(self, url: ReceiverUrl) -> bool:
        try:
            found = await self.resolver.addresses(url.host)
        except CannotResolve:
            return False
        return judge_answers(found, self.policy) is Verdict.ALLOWED
