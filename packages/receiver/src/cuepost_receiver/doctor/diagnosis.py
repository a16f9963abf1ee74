"""Finds the cause why a delivery does not verify."""

import time
from collections.abc import Iterable
from itertools import islice
from typing import Any

from cuepost_receiver.doctor.case import Case
from cuepost_receiver.doctor.pasted_headers import read_headers
from cuepost_receiver.doctor.questions import secret_fault
from cuepost_receiver.doctor.verdict import Diagnosis
from cuepost_receiver.header_reading import Headers
from cuepost_receiver.refusal import VerificationFailed
from cuepost_receiver.verification import TOLERANCE_SECONDS, verify

# An endpoint has two or three; each secret multiplies the work.
MOST_SECRETS = 16


def diagnose(
    headers: Headers | str,
    body: bytes | str,
    secrets: str | Iterable[str],
    *,
    now: float | None = None,
    tolerance: float = TOLERANCE_SECONDS,
    retired: Iterable[str] = (),
    computed: str | None = None,
) -> Diagnosis:
    """Explain why this delivery does not verify; never raises.

    `headers` may be pasted text. `retired` are secrets that a rotation has replaced. `computed` is
    the signature that the receiver's own code computed: for a valid delivery the diagnosis then
    explains what that code does differently. Of the secrets at most MOST_SECRETS are examined.
    """
    case = Case(
        pairs=_pairs(headers),
        body=_bytes(body),
        secrets=_listed(secrets),
        retired=[each for each in _listed(retired) if secret_fault(each) is None],
        now=time.time() if now is None else now,
        tolerance=tolerance,
    )
    try:
        verify(case.body, case.pairs, case.secrets, now=case.now, tolerance=tolerance)
    except VerificationFailed as failure:
        return case.explain(failure.reason)
    return case.explain_computed(computed) if computed else case.valid()


def _bytes(body: Any) -> Any:
    if isinstance(body, str):
        return body.encode(errors="surrogatepass")
    return bytes(body) if isinstance(body, bytearray) else body


def _pairs(headers: Any) -> Any:
    """Read headers into a list, because they may be an iterator."""
    if isinstance(headers, str):
        return read_headers(headers)
    try:
        return list(headers.items() if hasattr(headers, "items") else headers)
    except Exception:  # noqa: BLE001  # whatever was passed, a diagnosis comes out
        return None


def _listed(secrets: Any) -> list[Any]:
    if secrets is None or secrets == "":
        return []
    if isinstance(secrets, str):
        return [secrets]
    try:
        return list(islice(secrets, MOST_SECRETS))
    except Exception:  # noqa: BLE001  # whatever was passed, a diagnosis comes out
        return [None]
