"""Check a certificate and key on the disk against what is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from protokube.manifests.certificate import CertificateWanted
from protokube.pki.issue import general_name, load_key, usage_id
from protokube.pki.renewal import LIFETIME, Life, Place, Stage, may_renew, stage

if TYPE_CHECKING:
    from cryptography import x509


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a certificate has to be issued again; `why` is empty if it has not."""

    why: str = ""
    usable: bool = False
    """It is still good to use if no new one can be issued now."""
    keep_key: bool = False
    """Its key is sound: only the certificate is replaced, so that no reader ever sees a pair that does not match."""


GOOD = Verdict(usable=True)


def judge(
    pair: tuple[bytes, bytes] | None,
    wanted: CertificateWanted,
    authority: bytes,
    now: float,
    place: Place,
    lifetime: float = LIFETIME,
) -> Verdict:
    """Compare a certificate and its key with what is wanted; `pair` is None if either file is missing."""
    if pair is None:
        return Verdict("it was missing")
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        certificate = x509.load_pem_x509_certificate(pair[0])
        key = load_key(pair[1])
        differs = _difference(certificate, wanted)
    except (ValueError, TypeError, x509.ExtensionNotFound) as error:
        return Verdict(f"it could not be read ({type(error).__name__})")
    if key.public_key() != certificate.public_key():
        return Verdict("its key did not match it")
    try:
        signer = x509.load_pem_x509_certificate(authority)
        certificate.verify_directly_issued_by(signer)
    except (ValueError, TypeError, InvalidSignature):
        return Verdict(f"it was not signed by {wanted.authority}")
    if differs:
        return Verdict(differs, keep_key=True)
    life = Life(certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp(), lifetime)
    now_is = stage(life, now)
    ageing = now_is in (Stage.DUE, Stage.OVERDUE)
    if ageing and certificate.not_valid_after_utc >= signer.not_valid_after_utc:
        return GOOD  # a new one could not outlive its authority either
    if not may_renew(life, now, place):
        return GOOD
    return Verdict(f"it was {now_is.value}", usable=ageing or now_is is Stage.LONG, keep_key=True)


def _difference(certificate: x509.Certificate, wanted: CertificateWanted) -> str:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    def of(kind: x509.ObjectIdentifier) -> list[object]:
        return [each.value for each in certificate.subject.get_attributes_for_oid(kind)]

    names: set[str] = set()
    for extension in certificate.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            names = {str(each.value) for each in extension.value}
    usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value if wanted.usages else ()
    expected = {str(general_name(each).value) for each in wanted.names}
    if names != expected:
        missing, too_many = sorted(expected - names), sorted(names - expected)
        wrong = [f"{', '.join(each)} {what}" for each, what in ((missing, "missing"), (too_many, "too many")) if each]
        return f"its names were wrong: {'; '.join(wrong)}"
    if of(NameOID.COMMON_NAME) != [wanted.subject] or of(NameOID.ORGANIZATION_NAME) != list(wanted.organizations):
        return "it had another subject"
    if set(usages) != {usage_id(each) for each in wanted.usages}:
        return "it was for other usages"
    return ""
