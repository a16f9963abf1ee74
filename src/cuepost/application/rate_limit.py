"""The rate limit of a key: a token bucket in each process."""

import math
from collections import OrderedDict
from dataclasses import dataclass, field

from cuepost.domain.access import Caller
from cuepost.domain.errors import RateLimited
from cuepost.ports.system import Clock

REMEMBERED_BUCKETS = 10_000


@dataclass(frozen=True, slots=True)
class Allowance:
    """For the RateLimit headers: limit per minute, tokens left, seconds until it is full."""

    limit: int
    remaining: int
    reset_seconds: int


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


@dataclass(frozen=True, slots=True)
class RateLimit:
    clock: Clock
    per_minute: int
    per_minute_for_services: int
    # The least recently used comes first.
    _buckets: OrderedDict[str, _Bucket] = field(default_factory=OrderedDict)

    def spend(self, caller: Caller) -> Allowance:
        limit = self.per_minute if caller.account_id else self.per_minute_for_services
        now = self.clock.monotonic()
        bucket = self._buckets.get(caller.actor)
        if bucket is None:
            if len(self._buckets) >= REMEMBERED_BUCKETS:
                self._buckets.popitem(last=False)
            bucket = self._buckets[caller.actor] = _Bucket(limit, now)
        else:
            self._buckets.move_to_end(caller.actor)
        elapsed, bucket.filled_at = now - bucket.filled_at, now
        bucket.tokens = min(limit, bucket.tokens + elapsed * limit / 60)
        if bucket.tokens < 1:
            raise RateLimited(limit, math.ceil((1 - bucket.tokens) * 60 / limit))
        bucket.tokens -= 1
        reset = math.ceil((limit - bucket.tokens) * 60 / limit)
        return Allowance(limit, int(bucket.tokens), reset)
