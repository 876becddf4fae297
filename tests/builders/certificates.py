"""Real certificates for tests, made to the names that a complete configuration lists."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

USAGES = {"client auth": ExtendedKeyUsageOID.CLIENT_AUTH, "server auth": ExtendedKeyUsageOID.SERVER_AUTH}
Issued = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def write_certificates(directory: Path, wanted: dict[str, Any]) -> None:
    """NAME.crt and NAME.key for each certificate, AUTHORITY.crt for each authority they name."""
    directory.mkdir(parents=True)
    authorities: dict[str, Issued] = {}
    for name, told in wanted.items():
        authority = told["authority"]
        if authority not in authorities:
            authorities[authority] = _authority(authority)
            (directory / f"{authority}.crt").write_bytes(_pem(authorities[authority][0]))
        certificate, key = _issue(told, *authorities[authority])
        (directory / f"{name}.crt").write_bytes(_pem(certificate))
        plain = serialization.NoEncryption()
        text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        (directory / f"{name}.key").write_bytes(text)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now, day = dt.datetime.now(dt.UTC), dt.timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - day).not_valid_after(now + day)


def _authority(name: str) -> Issued:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    constraint = x509.BasicConstraints(ca=True, path_length=0)
    builder = _builder(subject, subject, key.public_key()).add_extension(constraint, critical=True)
    return builder.sign(key, hashes.SHA256()), key


def _issue(told: dict[str, Any], authority: x509.Certificate, signer: ec.EllipticCurvePrivateKey) -> Issued:
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, told["commonName"])]
    parts += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in told["organizations"]]
    builder = _builder(x509.Name(parts), authority.subject, key.public_key())
    builder = builder.add_extension(x509.ExtendedKeyUsage([USAGES[each] for each in told["usages"]]), critical=False)
    if told["names"]:
        names = x509.SubjectAlternativeName([_name(each) for each in told["names"]])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256()), key


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
