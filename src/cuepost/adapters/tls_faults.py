"""What a TLS error means, in words of our own: OpenSSL's and the peer's go no further."""

import ssl
from collections.abc import Mapping
from typing import Final

from cuepost.domain.attempt import TlsFault

# By the numbers of OpenSSL (X509_V_ERR_…), which do not change.
_BY_VERIFY_CODE: Final[Mapping[int, TlsFault]] = {
    9: TlsFault.CERTIFICATE_NOT_YET_VALID,
    10: TlsFault.CERTIFICATE_EXPIRED,
    **dict.fromkeys((62, 64), TlsFault.CERTIFICATE_WRONG_HOST),
    **dict.fromkeys((2, 18, 19, 20, 21), TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY),
}
# Not WRONG_VERSION_NUMBER: that is how something which is no TLS at all looks.
_TOO_OLD: Final = frozenset({"UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION"})


def fault_in(error: ssl.SSLError) -> TlsFault:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _BY_VERIFY_CODE.get(error.verify_code, TlsFault.TLS_HANDSHAKE_FAILED)
    too_old = error.reason in _TOO_OLD
    return TlsFault.TLS_TOO_OLD if too_old else TlsFault.TLS_HANDSHAKE_FAILED
