"""Read the content of a certificate signing request of a kubelet, as far as a decision needs it."""

from __future__ import annotations

import binascii
import ipaddress
from base64 import b64decode
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography import x509

NODE_USER, NODES = "system:node:", "system:nodes"


class WrongRequest(Exception):
    """Its content cannot be approved; the text says why."""


@dataclass(frozen=True, slots=True)
class Content:
    """A request that its own key has signed."""

    subject: str
    user: str
    """The user that its certificate would authenticate as; "" if the subject is not exactly that of a node."""
    names: frozenset[str] | None
    """DNS names and addresses in normal spelling; None if it requests anything else."""


def read(encoded: Any) -> Content:
    """Decode base64 and PEM; raises WrongRequest."""
    from cryptography import x509

    try:
        csr = x509.load_pem_x509_csr(b64decode(encoded, validate=True))
        if not csr.is_signature_valid:
            raise WrongRequest("it is not signed by its own key")
        return Content(csr.subject.rfc4514_string(), _user(csr), _names(csr))
    except (ValueError, TypeError, binascii.Error, x509.ExtensionNotFound, x509.DuplicateExtension) as error:
        raise WrongRequest(f"it cannot be read: {error}") from error
    except x509.UnsupportedGeneralNameType as error:
        raise WrongRequest(f"it asks for a name of an unknown kind: {error}") from error


def _user(csr: x509.CertificateSigningRequest) -> str:
    from cryptography.x509.oid import NameOID

    users = csr.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    groups = csr.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    exact = len(users) == 1 and [each.value for each in groups] == [NODES] and len(list(csr.subject)) == 2
    return str(users[0].value) if exact and str(users[0].value).startswith(NODE_USER) else ""


def _names(csr: x509.CertificateSigningRequest) -> frozenset[str] | None:
    from cryptography import x509

    kinds = [type(each.value) for each in csr.extensions]
    if not kinds:
        return frozenset()
    if kinds != [x509.SubjectAlternativeName]:
        return None
    names: x509.SubjectAlternativeName = csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    if not list(names) or any(not isinstance(each, x509.DNSName | x509.IPAddress) for each in names):
        return None
    if any(is_address(each) for each in names.get_values_for_type(x509.DNSName)):
        return None  # an address in a DNS name entry
    return frozenset(normal(str(each.value)) for each in names)


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1 << 14)  # each request is compared with the names of all Nodes
def normal(name: str) -> str:
    """One spelling for each name and address."""
    return str(ipaddress.ip_address(name)) if is_address(name) else name.lower()
