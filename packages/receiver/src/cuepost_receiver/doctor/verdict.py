"""The result of the doctor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cuepost_receiver.doctor.causes import WORDS, Cause


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`sentence` explains the cause and `remedy` how to fix it; neither contains a secret."""

    cause: Cause
    sentence: str
    remedy: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_valid(self) -> bool:
        return self.cause is Cause.VALID

    def as_dict(self) -> dict[str, Any]:
        """The form for JSON."""
        return {
            "valid": self.is_valid,
            "cause": self.cause.value,
            "sentence": self.sentence,
            "remedy": self.remedy,
            "facts": dict(self.facts),
        }


def diagnosis_of(cause: Cause, **facts: Any) -> Diagnosis:
    words = WORDS[cause]
    return Diagnosis(cause, words.sentence.format(**facts), words.remedy.format(**facts), facts)
