"""A key's bucket of requests: it empties, refuses, and refills steadily."""

from dataclasses import replace

import pytest

from cuepost.application import admission
from cuepost.application.admission import Allowance, RateLimit
from cuepost.domain.errors import RateLimited
from cuepost.testing import START, Factory, SequentialIds, VirtualClock

CALLER = Factory.owner(SequentialIds()(START))


def limited(clock: VirtualClock) -> RateLimit:
    return RateLimit(clock, per_minute=6, per_minute_for_services=60)


def spend_all(limit: RateLimit) -> list[Allowance]:
    return [limit.spend(CALLER) for _ in range(6)]


def test_the_allowance_tells_what_is_left_and_when_it_is_full_again() -> None:
    assert spend_all(limited(VirtualClock())) == [
        Allowance(6, left, (6 - left) * 10) for left in (5, 4, 3, 2, 1, 0)
    ]


def test_an_empty_bucket_refuses_and_says_how_long_to_wait() -> None:
    clock = VirtualClock()
    limit = limited(clock)
    spend_all(limit)
    with pytest.raises(RateLimited) as refused:
        limit.spend(CALLER)
    assert (refused.value.limit, refused.value.retry_after_seconds) == (6, 10)
    clock.advance(9.5)
    with pytest.raises(RateLimited) as refused:
        limit.spend(CALLER)
    assert refused.value.retry_after_seconds == 1
    clock.advance(0.5)
    assert limit.spend(CALLER) == Allowance(6, 0, 60)


def test_a_bucket_never_holds_more_than_its_limit() -> None:
    clock = VirtualClock()
    limit = limited(clock)
    limit.spend(CALLER)
    clock.advance(days=1)
    assert limit.spend(CALLER) == Allowance(6, 5, 10)


def test_each_key_has_its_own_bucket() -> None:
    limit = limited(VirtualClock())
    spend_all(limit)
    assert limit.spend(replace(CALLER, actor="key:other")).remaining == 5


def test_service_keys_have_their_own_limit() -> None:
    limit = limited(VirtualClock())
    assert limit.spend(Factory.pipeline()) == Allowance(60, 59, 1)


def test_memory_of_buckets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "REMEMBERED_BUCKETS", 2)
    limit = limited(VirtualClock())
    for number in range(5):
        limit.spend(replace(CALLER, actor=f"key:{number}"))
    assert len(limit._buckets) <= 2


def test_of_many_buckets_the_one_that_was_used_longest_ago_is_forgotten_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "REMEMBERED_BUCKETS", 3)
    limit = limited(VirtualClock())
    for name in ("a", "b", "c", "a", "d"):
        limit.spend(replace(CALLER, actor=name))
    assert limit.spend(replace(CALLER, actor="a")).remaining == 3
    assert limit.spend(replace(CALLER, actor="c")).remaining == 4
    assert limit.spend(replace(CALLER, actor="b")).remaining == 5
