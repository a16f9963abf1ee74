"""Names the one cause for which a delivery does not verify, or says that it is valid."""

import time
from collections.abc import Iterable
from typing import Any

from cuepost_receiver.doctor.case import Case
from cuepost_receiver.doctor.pasted_headers import read_headers
from cuepost_receiver.doctor.questions import secret_fault
from cuepost_receiver.doctor.verdict import Diagnosis
from cuepost_receiver.header_reading import Headers
from cuepost_receiver.refusal import VerificationFailed
from cuepost_receiver.verification import TOLERANCE_SECONDS, verify


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
    """Say why this delivery does not verify; never raises, whatever is wrong with it.

    `headers` may be text as people paste it. `retired` are secrets that a rotation has replaced.
    `computed` is the signature that the receiver's own code came to: for a delivery that is valid
    the doctor then says what that code does differently.
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
    return case.judge(computed) if computed else case.praise()


def _bytes(body: Any) -> Any:
    if isinstance(body, str):
        return body.encode(errors="surrogatepass")
    return bytes(body) if isinstance(body, bytearray) else body


def _pairs(headers: Any) -> Any:
    """Read once: an iterator can be read no second time."""
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
        return list(secrets)
    except Exception:  # noqa: BLE001  # whatever was passed, a diagnosis comes out
        return [None]
