"""Sign a certificate with exactly the requested names and usages, for a year or the requested lifetime."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from protokube.errors import Refused
from protokube.manifests.certificate import CertificateWanted
from protokube.pki.authority import Authority
from protokube.pki.renewal import DAY, LIFETIME

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def issue(
    wanted: CertificateWanted, authority: Authority, now: float, lifetime: float = LIFETIME, key: bytes | None = None
) -> Issued:
    """A certificate valid from a day before now, at most as long as its authority. Refused if that has expired.

    A day even for a lifetime of a minute: a peer whose clock is behind has to accept it. It is for a new key, unless
    one is given.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.x509.oid import NameOID

    signer = x509.load_pem_x509_certificate(authority.certificate)
    moment = dt.datetime.fromtimestamp(int(now), dt.UTC)
    most = (signer.not_valid_after_utc - moment).total_seconds()  # before adding: no date is after year 9999
    end = moment + dt.timedelta(seconds=min(lifetime, most))
    start = max(moment - dt.timedelta(seconds=DAY), signer.not_valid_before_utc)
    if end <= moment or start > moment:
        raise Refused(
            f"the authority {authority.name!r} cannot sign now",
            saw=f"it is {moment:%F %T} UTC",
            want=f"between {signer.not_valid_before_utc:%F %T} and {signer.not_valid_after_utc:%F %T} UTC",
            hint="check the clock of this machine; if it is right, the authority has to be replaced",
        )
    own = load_key(key) if key else ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, wanted.subject)]
    parts += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in wanted.organizations]
    builder = x509.CertificateBuilder().subject_name(x509.Name(parts)).issuer_name(signer.subject)
    builder = builder.public_key(own.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(start).not_valid_after(end)
    for extension, critical in _extensions(wanted, signer, own.public_key()):
        builder = builder.add_extension(extension, critical)
    private = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(private, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey)  # those that kops made are RSA
    certificate = builder.sign(private, hashes.SHA256())
    plain = serialization.NoEncryption()
    return Issued(
        certificate.public_bytes(serialization.Encoding.PEM),
        own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain),
    )


def _extensions(
    wanted: CertificateWanted, signer: x509.Certificate, key: ec.EllipticCurvePublicKey
) -> list[tuple[x509.ExtensionType, bool]]:
    from cryptography import x509

    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    found: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (usage, True),
        (x509.SubjectKeyIdentifier.from_public_key(key), False),
        (_issuer(signer), False),
    ]
    if wanted.usages:
        found.append((x509.ExtendedKeyUsage([usage_id(each) for each in wanted.usages]), False))
    if wanted.names:
        found.append((x509.SubjectAlternativeName([general_name(each) for each in wanted.names]), False))
    return found


def _issuer(signer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Use the key identifier in the authority's certificate, which may not be computed as ours are."""
    from cryptography import x509

    try:
        own = signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Raises ValueError or TypeError for what is not a key like ours."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("another kind of key")
    return key


def usage_id(usage: str) -> x509.ObjectIdentifier:
    from cryptography.x509.oid import ExtendedKeyUsageOID

    match usage:
        case "server auth":
            return ExtendedKeyUsageOID.SERVER_AUTH
        case "client auth":
            return ExtendedKeyUsageOID.CLIENT_AUTH
        case _:
            raise Refused(f"no certificate can be issued for {usage!r}", want="server auth or client auth")


def general_name(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
