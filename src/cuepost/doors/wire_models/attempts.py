"""Attempts: each HTTP request to a receiver, with what came back and what it means."""

import codecs
from base64 import b64encode
from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta

from cuepost.domain.attempt import Attempt as MadeAttempt
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import Trigger
from cuepost.domain.instants import to_text
from cuepost.doors.wire_models.shapes import Answer, Moment

Number = Annotated[int, Meta(ge=1, description="1, 2, 3 … within its budget.")]
Budget = Annotated[int, Meta(ge=1, description="1, and one more at each retry by hand.")]
Explanation = Annotated[str, Meta(description="What happened, in a sentence.")]
Mend = Annotated[str, Meta(description="What to do about it.")]


class Header(Answer, frozen=True):
    name: str
    value: str

    @classmethod
    def all(cls, pairs: Iterable[tuple[str, str]]) -> "list[Header]":
        return [cls(name, value) for name, value in pairs]


class Timings(Answer, frozen=True):
    """Milliseconds; null where the attempt did not get that far, or had no need to."""

    dns_ms: float | None
    connect_ms: float | None
    tls_ms: float | None
    first_byte_ms: float | None


class LastAttempt(Answer, frozen=True):
    number: Number
    budget: Budget
    started_at: Moment
    duration_ms: float
    response_status: int | None
    outcome: Outcome
    explanation: Explanation
    mend: Mend

    @classmethod
    def of(cls, attempt: MadeAttempt) -> "LastAttempt":
        explained = attempt.explanation
        return cls(
            number=attempt.number,
            budget=attempt.budget,
            started_at=to_text(attempt.started_at),
            duration_ms=attempt.duration_ms,
            response_status=attempt.response_status,
            outcome=attempt.outcome,
            explanation=explained.sentence,
            mend=explained.mend,
        )


class Attempt(Answer, frozen=True):
    """Headers are lists of name and value, because a name may come twice."""

    number: Number
    budget: Budget
    trigger: Trigger
    started_at: Moment
    duration_ms: float
    timings: Timings
    signed_with: Annotated[list[str], Meta(description="Hints of the secrets that signed.")]
    request_headers: list[Header]
    response_status: int | None
    response_headers: list[Header]
    response_body: Annotated[str, Meta(description="Its first 16 KiB.")]
    response_body_encoding: Annotated[
        Literal["utf-8", "base64"], Meta(description="base64 where it is not UTF-8 text.")
    ]
    response_truncated: bool
    outcome: Outcome
    explanation: Explanation
    mend: Mend

    @classmethod
    def of(cls, attempt: MadeAttempt) -> "Attempt":
        explained, timings = attempt.explanation, attempt.timings
        body, encoding = _legible(attempt.response_body, attempt.response_truncated)
        return cls(
            number=attempt.number,
            budget=attempt.budget,
            trigger=attempt.trigger,
            started_at=to_text(attempt.started_at),
            duration_ms=attempt.duration_ms,
            timings=Timings(
                timings.dns_ms, timings.connect_ms, timings.tls_ms, timings.first_byte_ms
            ),
            signed_with=list(attempt.signed_with),
            request_headers=Header.all(attempt.request_headers),
            response_status=attempt.response_status,
            response_headers=Header.all(attempt.response_headers),
            response_body=body,
            response_body_encoding=encoding,
            response_truncated=attempt.response_truncated,
            outcome=attempt.outcome,
            explanation=explained.sentence,
            mend=explained.mend,
        )


def _legible(body: bytes, truncated: bool) -> tuple[str, Literal["utf-8", "base64"]]:
    """A text that was cut off may end in a part of a character, which is left out."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(body, not truncated), "utf-8"
    except UnicodeDecodeError:
        return b64encode(body).decode(), "base64"
