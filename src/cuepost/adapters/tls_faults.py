"""Maps TLS errors to our own list of faults, so that no text of OpenSSL or a peer is passed on."""

import ssl
from collections.abc import Mapping
from typing import Final

from cuepost.domain.attempt import TlsFault

# By OpenSSL's stable error numbers (X509_V_ERR_…).
_BY_VERIFY_CODE: Final[Mapping[int, TlsFault]] = {
    9: TlsFault.CERTIFICATE_NOT_YET_VALID,
    10: TlsFault.CERTIFICATE_EXPIRED,
    **dict.fromkeys((62, 64), TlsFault.CERTIFICATE_WRONG_HOST),
    **dict.fromkeys((2, 18, 19, 20, 21), TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY),
}
# Not WRONG_VERSION_NUMBER, which a peer that does not speak TLS at all causes.
_TOO_OLD: Final = frozenset({"UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION"})


def fault_in(error: ssl.SSLError) -> TlsFault:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _BY_VERIFY_CODE.get(error.verify_code, TlsFault.TLS_HANDSHAKE_FAILED)
    too_old = error.reason in _TOO_OLD
    return TlsFault.TLS_TOO_OLD if too_old else TlsFault.TLS_HANDSHAKE_FAILED
