"""A certificate authority that lives as long as a test, and TLS servers with its certificates."""

import ssl
import warnings
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
_FAR_AWAY = datetime(2049, 1, 1, tzinfo=UTC)


class Authority:
    def __init__(self, name: str = "Test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        public = self._key.public_key()
        self._key_id = x509.SubjectKeyIdentifier.from_public_key(public)
        self.certificate = (
            _builder(self._name, self._name, public, _LONG_AGO, _FAR_AWAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(of_authority=True), critical=True)
            .add_extension(self._key_id, critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def write_to(self, file: Path) -> str:
        file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        return str(file)

    def server_context(
        self, *names: str, expired: bool = False, early: bool = False
    ) -> ssl.SSLContext:
        """For a server with these names or addresses in its certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with TemporaryDirectory() as folder:
            chain = Path(folder, "chain.pem")
            chain.write_bytes(self.server_chain(*names, expired=expired, early=early))
            context.load_cert_chain(chain)
        return context

    def server_chain(self, *names: str, expired: bool = False, early: bool = False) -> bytes:
        """Key and certificate of such a server, in PEM form."""
        key = ec.generate_private_key(ec.SECP256R1())
        since = _FAR_AWAY - timedelta(days=1) if early else _LONG_AGO
        until = _LONG_AGO + timedelta(days=1) if expired else _FAR_AWAY
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test server")])
        certificate = (
            _builder(subject, self._name, key.public_key(), since, until)
            .add_extension(x509.SubjectAlternativeName(map(_general_name, names)), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(of_authority=False), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._key_id),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return _pem_of(key) + certificate.public_bytes(serialization.Encoding.PEM)


def only_tls_1_1(context: ssl.SSLContext) -> ssl.SSLContext:
    """The context of a server that no one has looked after for years."""
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    return context


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    since: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
    )


def _usage(*, of_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not of_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=of_authority,
        crl_sign=of_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
