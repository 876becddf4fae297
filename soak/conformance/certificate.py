"""A self-signed certificate for a test server whose clients do not verify it; always the same one.

Its key is derived from its name and not secret. So an image that contains it is reproducible, bit for bit.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

BEGIN, END = dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2080, 1, 1, tzinfo=dt.UTC)


def self_signed(name: str, *addresses: str) -> tuple[str, str]:
    """Certificate and key, as text."""
    seed = hashlib.sha256(name.encode()).digest()
    key = Ed25519PrivateKey.from_private_bytes(seed)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    names = [x509.DNSName(name), *(x509.IPAddress(ip_address(each)) for each in addresses)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(seed[:8], "big"))
        .not_valid_before(BEGIN)
        .not_valid_after(END)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, None)
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM).decode(), private.decode()
