"""Certificate authorities: made once by `up`, kept in the store, and only ever read by agents.

Two people may run `up` in the same second, and two authorities of one name would mean two halves of a cluster that do
not trust each other. The keyset, which holds certificate and key together, is written with a conditional create: the
first writer has made the authority, and all others read it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from protokube.errors import Refused
from protokube.pki.keyset import read_keyset, write_keyset
from protokube.pki.keystore import Keystore

YEARS = 10
DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority: its certificate and its private key."""

    name: str
    certificate: bytes
    """As PEM."""
    key: bytes = field(repr=False)


def make_authority(name: str, now: float) -> Authority:
    """Make a new authority. It is valid since yesterday, so that a machine whose clock is behind accepts it at once."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    moment = dt.datetime.fromtimestamp(int(now), dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(moment - DAY).not_valid_after(moment + YEARS * 365 * DAY)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    builder = builder.add_extension(usage, critical=True)
    mark = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = builder.add_extension(mark, critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(mark)
    certificate = builder.add_extension(issuer, critical=False).sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    return Authority(
        name=name,
        certificate=certificate.public_bytes(serialization.Encoding.PEM),
        key=key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain),
    )


def serial_of(certificate: bytes) -> str:
    from cryptography import x509

    return str(x509.load_pem_x509_certificate(certificate).serial_number)


def ensure_authority(keystore: Keystore, name: str, now: float) -> Authority:
    """The authority of that name; made if there is none. Never called by an agent."""
    place = keystore.keyset("private", name)
    if (found := keystore.read_or_none(place)) is None:
        made = make_authority(name, now)
        keystore.create(place, write_keyset(name, serial_of(made.certificate), made.certificate, made.key))
        found = keystore.read(place)  # ours, or that of a faster writer
    authority = _read(keystore, name, found)
    serial = serial_of(authority.certificate)
    # For readers that may not see keys, and for tools of kops; after a crash before this, the next run writes them.
    keystore.create(keystore.keyset("issued", name), write_keyset(name, serial, authority.certificate, None))
    keystore.create(keystore.certificate(name, serial), authority.certificate)
    keystore.create(keystore.private_key(name, serial), authority.key)
    return authority


def load_authority(keystore: Keystore, name: str) -> Authority:
    """The authority of that name. Refused if there is none: making another one would split the cluster."""
    found = keystore.read_or_none(keystore.keyset("private", name))
    if found is None:
        raise Refused(
            f"there is no authority {name!r} in {keystore.url}",
            want=keystore.keyset("private", name),
            hint="`protokube up` makes it; if there was one, bring it back from a backup of the store",
        )
    return _read(keystore, name, found)


def _read(keystore: Keystore, name: str, text: bytes) -> Authority:
    try:
        certificate, key = read_keyset(text)
    except ValueError as error:
        raise Refused(
            f"the authority {name!r} in {keystore.url} cannot be read: {error}",
            saw=keystore.keyset("private", name),
            hint="bring it back from a backup of the store",
        ) from error
    return Authority(name=name, certificate=certificate, key=key)


class Authorities(Mapping[str, Authority]):
    """Authorities by name, read from the store on first use and cached."""

    def __init__(self, keystore: Keystore) -> None:
        self._keystore = keystore
        self._known: dict[str, Authority] = {}

    def __getitem__(self, name: str) -> Authority:
        """Refused if there is none, TryLater if the store does not answer."""
        if name not in self._known:
            self._known[name] = load_authority(self._keystore, name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
