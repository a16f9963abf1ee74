"""Attempts: HTTP requests to receivers with their responses and explanations."""

import codecs
from base64 import b64encode
from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta

from cuepost.domain.attempt import Attempt as MadeAttempt
from cuepost.domain.attempt import Outcome
from cuepost.domain.attempt import Timings as MeasuredTimings
from cuepost.domain.delivery import Trigger
from cuepost.domain.instants import to_text
from cuepost.interfaces.wire_models.shapes import Moment, ResponseModel
from cuepost.ports.history import MOST_ATTEMPTS

Number = Annotated[int, Meta(ge=1, description="1, 2, 3 … within its budget.")]
Budget = Annotated[int, Meta(ge=1, description="1, plus one for each manual retry.")]
AttemptBudget = Annotated[
    int,
    Meta(
        ge=0,
        description="The budget of the attempt; 0 for `interrupted` and `superseded` attempts, "
        "which count for no budget.",
    ),
]
AttemptUrl = Annotated[
    str | None,
    Meta(description="The URL of the request; null for old attempts, which did not record it."),
]
NEWEST_ATTEMPTS = Meta(description=f"The newest {MOST_ATTEMPTS}, in the order in which they began.")
Milliseconds = Annotated[float, Meta(description="At most three decimals.")]
Explanation = Annotated[str, Meta(description="What happened, in a sentence.")]
Fix = Annotated[str, Meta(description="How to fix it.")]


def millis(duration: float) -> float:
    """Rounded to microseconds."""
    return round(duration, 3)


def optional_millis(duration: float | None) -> float | None:
    return None if duration is None else millis(duration)


class Header(ResponseModel, frozen=True):
    name: str
    value: str

    @classmethod
    def all(cls, pairs: Iterable[tuple[str, str]]) -> "list[Header]":
        return [cls(name, value) for name, value in pairs]


class Timings(ResponseModel, frozen=True):
    """Milliseconds; null for a phase that was not reached or not needed."""

    dns_ms: Milliseconds | None
    connect_ms: Milliseconds | None
    tls_ms: Milliseconds | None
    first_byte_ms: Milliseconds | None

    @classmethod
    def of(cls, measured: MeasuredTimings) -> "Timings":
        return cls(
            optional_millis(measured.dns_ms),
            optional_millis(measured.connect_ms),
            optional_millis(measured.tls_ms),
            optional_millis(measured.first_byte_ms),
        )


class LastAttempt(ResponseModel, frozen=True):
    number: Number
    budget: AttemptBudget
    started_at: Moment
    duration_ms: Milliseconds
    response_status: int | None
    outcome: Outcome
    explanation: Explanation
    fix: Fix

    @classmethod
    def of(cls, attempt: MadeAttempt) -> "LastAttempt":
        explained = attempt.explanation
        return cls(
            number=attempt.number,
            budget=attempt.budget,
            started_at=to_text(attempt.started_at),
            duration_ms=millis(attempt.duration_ms),
            response_status=attempt.response_status,
            outcome=attempt.outcome,
            explanation=explained.sentence,
            fix=explained.fix,
        )


class Attempt(ResponseModel, frozen=True):
    """Headers are lists of name and value, because names may be repeated."""

    number: Number
    budget: AttemptBudget
    url: AttemptUrl
    trigger: Trigger
    started_at: Moment
    duration_ms: Milliseconds
    timings: Timings
    signed_with: Annotated[list[str], Meta(description="Hints of the secrets that signed it.")]
    request_headers: list[Header]
    response_status: int | None
    response_headers: list[Header]
    response_body: Annotated[str, Meta(description="The first 16 KiB.")]
    response_body_encoding: Annotated[
        Literal["utf-8", "base64"],
        Meta(title="BodyEncoding", description="base64 if the body is not UTF-8 text."),
    ]
    response_truncated: bool
    outcome: Outcome
    explanation: Explanation
    fix: Fix

    @classmethod
    def of(cls, attempt: MadeAttempt) -> "Attempt":
        explained = attempt.explanation
        body, encoding = _legible(attempt.response_body, attempt.response_truncated)
        return cls(
            number=attempt.number,
            budget=attempt.budget,
            url=attempt.url,
            trigger=attempt.trigger,
            started_at=to_text(attempt.started_at),
            duration_ms=millis(attempt.duration_ms),
            timings=Timings.of(attempt.timings),
            signed_with=list(attempt.signed_with),
            request_headers=Header.all(attempt.request_headers),
            response_status=attempt.response_status,
            response_headers=Header.all(attempt.response_headers),
            response_body=body,
            response_body_encoding=encoding,
            response_truncated=attempt.response_truncated,
            outcome=attempt.outcome,
            explanation=explained.sentence,
            fix=explained.fix,
        )


def _legible(body: bytes, truncated: bool) -> tuple[str, Literal["utf-8", "base64"]]:
    """Decode as text; an incomplete character at the end of a truncated text is dropped."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(body, not truncated), "utf-8"
    except UnicodeDecodeError:
        return b64encode(body).decode(), "base64"
