"""Checks a receiver URL while the user types it."""

import asyncio
from dataclasses import dataclass

from cuepost.domain.access import Caller, Scope
from cuepost.domain.egress_policy import EgressPolicy, Verdict, judge_answers
from cuepost.domain.receiver_url import ReceiverUrl, ReceiverUrlRefused, parse_receiver_url
from cuepost.ports.transport import CannotResolve, Resolver

# A failed check always takes this long, so that its duration says nothing about private names.
LOOK_UP_SECONDS = 1.5
# The same message for an unknown name and for one with a private address, so that this check does
# not reveal names of the private network.
NOT_REACHED = "This name does not resolve to a public address; check its spelling and its DNS."


@dataclass(frozen=True, slots=True)
class UrlVerdict:
    """`code` is empty if the URL is accepted; `url` is the form that is stored."""

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
        if parsed.address is None and not await self._resolves(parsed):
            return UrlVerdict(False, NOT_REACHED, parsed.text, "host_not_reached")
        return UrlVerdict(True, "HTTPS, an allowed port, and a public address.", parsed.text)

    async def _resolves(self, url: ReceiverUrl) -> bool:
        """Returns False only after the whole time."""
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
