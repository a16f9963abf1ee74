"""Finds the cause for one delivery that does not verify."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cuepost_receiver.doctor import questions
from cuepost_receiver.doctor.causes import Cause
from cuepost_receiver.doctor.loose_signatures import LooseSignature, fault_in, loose_signatures
from cuepost_receiver.doctor.suspects import Evidence, matching_suspect
from cuepost_receiver.doctor.verdict import Diagnosis, diagnosis_of
from cuepost_receiver.header_reading import ID, SIGNATURE, TIMESTAMP, webhook_headers
from cuepost_receiver.refusal import Reason
from cuepost_receiver.signing_key import digest


@dataclass(frozen=True, slots=True)
class Case:
    pairs: Sequence[tuple[Any, Any]]
    body: bytes
    secrets: Sequence[str] = field(repr=False)
    retired: Sequence[str] = field(repr=False)
    now: float
    tolerance: float

    def explain(self, reason: Reason) -> Diagnosis:
        """Explain why `verify` rejected the delivery."""
        return _EXPLANATIONS[reason](self)

    def valid(self) -> Diagnosis:
        """The diagnosis of a delivery that `verify` accepted."""
        evidence = self._evidence(loose_signatures(self._headers[SIGNATURE]))
        numbers = [
            number
            for number, key in enumerate(evidence.keys, start=1)
            if digest(key, evidence.event_id, evidence.timestamp, self.body) in evidence.signatures
        ]
        return diagnosis_of(
            Cause.VALID,
            secret_number=numbers[0],
            secret_count=len(self.secrets),
            age=questions.span(self._age),
        )

    def explain_computed(self, computed: str) -> Diagnosis:
        """Explain how the receiver's code got another signature for a valid delivery."""
        theirs = loose_signatures(computed)
        if any(each.raw in self._expected for each in theirs):
            well_formed = theirs[0].cause is Cause.SIGNATURE_MALFORMED
            return self.valid() if well_formed else diagnosis_of(theirs[0].cause)
        found = matching_suspect(self._evidence(theirs))
        return (
            diagnosis_of(found.cause, **found.facts)
            if found
            else diagnosis_of(Cause.COMPUTED_DIFFERENTLY)
        )

    @property
    def _headers(self) -> dict[str, str]:
        return webhook_headers(self.pairs)

    @property
    def _age(self) -> float:
        return self.now - int(self._headers[TIMESTAMP])

    @property
    def _expected(self) -> list[bytes]:
        evidence = self._evidence([])
        named, at = evidence.event_id, evidence.timestamp
        return [digest(key, named, at, self.body) for key in evidence.keys]

    def _evidence(self, signatures: Sequence[LooseSignature]) -> Evidence:
        headers, raw = self._headers, [each.raw for each in signatures]
        return Evidence(headers[ID], headers[TIMESTAMP], self.body, self.secrets, self.retired, raw)

    def without_headers(self) -> Diagnosis:
        missing = questions.missing_headers(self._headers)
        near = questions.near_names(missing, [str(name) for name, _ in self.pairs])
        hint = f" There is {', '.join(near)} instead." if near else ""
        return diagnosis_of(Cause.HEADER_MISSING, missing=", ".join(missing), near=hint)

    def without_secret(self) -> Diagnosis:
        return diagnosis_of(next(filter(None, map(questions.secret_fault, self.secrets))))

    def with_bad_id(self) -> Diagnosis:
        headers = self._headers
        swapped = headers[ID].isdecimal() and not headers.get(TIMESTAMP, "").isdecimal()
        return diagnosis_of(Cause.ID_AND_TIMESTAMP_SWAPPED if swapped else Cause.ID_MALFORMED)

    def with_bad_timestamp(self) -> Diagnosis:
        headers = self._headers
        if headers[ID].isdecimal():
            return diagnosis_of(Cause.ID_AND_TIMESTAMP_SWAPPED)
        form = questions.timestamp_form(headers[TIMESTAMP])
        return diagnosis_of(Cause.TIMESTAMP_MALFORMED, looks_like=form)

    def out_of_time(self) -> Diagnosis:
        cause = Cause.TIMESTAMP_TOO_OLD if self._age > 0 else Cause.TIMESTAMP_IN_FUTURE
        return diagnosis_of(
            cause,
            age=questions.span(self._age),
            limit=questions.span(self.tolerance),
            zone=questions.zone_hint(self._age),
            seconds=round(self._age),
        )

    def with_bad_signature(self) -> Diagnosis:
        text = self._headers[SIGNATURE]
        found = loose_signatures(text)
        for each in found:
            if each.raw in self._expected and each.cause is not Cause.SIGNATURE_MALFORMED:
                return diagnosis_of(each.cause)
        return diagnosis_of(Cause.SIGNATURE_MALFORMED, fault=fault_in(text))

    def without_match(self) -> Diagnosis:
        evidence = self._evidence(loose_signatures(self._headers[SIGNATURE]))
        found = matching_suspect(evidence)
        if found is not None:
            return diagnosis_of(found.cause, **found.facts)
        if not self.body:
            return diagnosis_of(Cause.BODY_EMPTY)
        if set(self.secrets) & set(self.retired):
            return diagnosis_of(Cause.PREVIOUS_SECRET)
        lengths = [str(value) for name, value in self.pairs if _is_length(name)]
        return diagnosis_of(
            questions.likeliest(evidence, lengths),
            body_id=evidence.body_id,
            header_id=evidence.event_id,
            this_secret="this secret" if len(self.secrets) == 1 else "any of these secrets",
        )


def _is_length(name: object) -> bool:
    return isinstance(name, str) and name.lower() == "content-length"


def _always(cause: Cause) -> Callable[[Case], Diagnosis]:
    return lambda _: diagnosis_of(cause)


_EXPLANATIONS: dict[Reason, Callable[[Case], Diagnosis]] = {
    Reason.BAD_HEADERS: _always(Cause.HEADERS_UNREADABLE),
    Reason.REPEATED_HEADER: _always(Cause.HEADER_REPEATED),
    Reason.NO_SECRETS: _always(Cause.SECRET_MISSING),
    Reason.BAD_TOLERANCE: _always(Cause.TOLERANCE_UNUSABLE),
    Reason.BAD_BODY: _always(Cause.BODY_REWRITTEN),
    Reason.BAD_SECRET: Case.without_secret,
    Reason.MISSING_ID: Case.without_headers,
    Reason.MISSING_TIMESTAMP: Case.without_headers,
    Reason.MISSING_SIGNATURE: Case.without_headers,
    Reason.BAD_ID: Case.with_bad_id,
    Reason.BAD_TIMESTAMP: Case.with_bad_timestamp,
    Reason.BAD_SIGNATURE: Case.with_bad_signature,
    Reason.TOO_OLD: Case.out_of_time,
    Reason.TOO_NEW: Case.out_of_time,
    Reason.NO_MATCH: Case.without_match,
}
