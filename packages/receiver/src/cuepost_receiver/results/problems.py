"""Why a result could not be fetched."""

from enum import StrEnum


class Problem(StrEnum):
    """The values are stable."""

    OUTSIDE_BASE_URL = "outside_base_url"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    NOT_READY = "not_ready"
    GONE = "gone"
    UNAVAILABLE = "unavailable"
    BAD_ANSWER = "bad_answer"
    LINK_REFUSED = "link_refused"
    TOO_LARGE = "too_large"
    WRONG_SIZE = "wrong_size"
    TOO_SLOW = "too_slow"
    CANNOT_WRITE = "cannot_write"


class ResultFailed(Exception):
    """`problem` is a stable code; the message explains it."""

    def __init__(self, problem: Problem, text: str) -> None:
        super().__init__(text)
        self.problem = problem

    @property
    def may_pass(self) -> bool:
        """Whether a later retry may succeed."""
        return self.problem in {Problem.UNAVAILABLE, Problem.NOT_READY, Problem.TOO_SLOW}
