"""Whether an answer says when to come back, within the range that the documentation names."""

from collections.abc import Mapping

from cuepost.application.retry_after import LEAST_SECONDS, SPREAD_SECONDS


def says_when_to_come_back(headers: Mapping[str, str], least: int = LEAST_SECONDS) -> bool:
    return least <= int(headers["retry-after"]) <= least + SPREAD_SECONDS
