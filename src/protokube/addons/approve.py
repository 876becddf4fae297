"""Decide which requests for a kubelet's serving certificate to approve: those for names that the Node has.

Kubernetes approves none of them itself, since it cannot know who owns a name. The default is to deny: a request is
approved only if no check fails. A Node reports its own addresses, so names of the control plane or of another Node are
denied whatever the Node reports.
"""

from __future__ import annotations

import binascii
import ipaddress
from base64 import b64decode
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from protokube.addons.value import Tree

if TYPE_CHECKING:
    from cryptography import x509

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "kubernetes.io/kubelet-serving"
USER, GROUP = "system:node:", "system:nodes"
USAGES = ({"digital signature", "server auth"}, {"digital signature", "key encipherment", "server auth"})
"""Since 1.27 a kubelet with an elliptic-curve key requests the first set, all others the second."""
NAMES = {"Hostname", "InternalDNS", "ExternalDNS"}
ADDRESSES = {"InternalIP", "ExternalIP"}


def is_open(request: Tree) -> bool:
    """Whether the request is neither approved, denied nor issued yet."""
    status = request.get("status") or {}
    return not status.get("conditions") and not status.get("certificate")


def why_not(request: Tree, nodes: Mapping[str, Tree], reserved: Collection[str] = ()) -> str:
    """Why a request must not be approved; "" if it may be. `reserved` names belong to no Node."""
    spec: Tree = request.get("spec") or {}
    user = str(spec.get("username", ""))
    name = user.removeprefix(USER)
    if not is_open(request):
        return "it is decided already"
    if spec.get("signerName") != SIGNER:
        return f"it is for the signer {spec.get('signerName')}"
    if not user.startswith(USER) or not name or GROUP not in (spec.get("groups") or ()):
        return f"{user or 'nobody'} is no node"
    usages = spec.get("usages") or []
    if set(usages) not in USAGES or len(usages) != len(set(usages)):
        return f"it is for {', '.join(map(str, usages)) or 'no use'}"
    if name not in nodes:
        return f"there is no Node {name}"
    others = {each for other, node in nodes.items() if other != name for each in names_of(node)}
    return _why_not_content(spec.get("request"), user, names_of(nodes[name]), {*others, *map(_normal, reserved)})


def _why_not_content(encoded: Any, user: str, own: set[str], others: set[str]) -> str:
    from cryptography import x509

    try:
        csr = x509.load_pem_x509_csr(b64decode(encoded, validate=True))
        if not csr.is_signature_valid:
            return "it is not signed by its own key"
        subject = {(each.oid.dotted_string, str(each.value)) for each in csr.subject}
        names, count = _names_in(csr), len(list(csr.subject))
    except (ValueError, TypeError, binascii.Error, x509.ExtensionNotFound, x509.DuplicateExtension) as error:
        return f"it cannot be read: {error}"
    except x509.UnsupportedGeneralNameType as error:
        return f"it asks for a name of an unknown kind: {error}"
    oid = x509.oid.NameOID
    if subject != {(oid.COMMON_NAME.dotted_string, user), (oid.ORGANIZATION_NAME.dotted_string, GROUP)} or count != 2:
        return f"it is for {csr.subject.rfc4514_string()}"
    if names is None:
        return "it asks for more than names"
    if strange := sorted(names - own):
        return f"the Node does not have {', '.join(strange)}"
    if taken := sorted(names & others):
        return f"{', '.join(taken)} is not the Node's alone"
    return ""


def _names_in(csr: x509.CertificateSigningRequest) -> set[str] | None:
    """The requested names; None if it requests anything else, or no name."""
    from cryptography import x509

    if [type(each.value) for each in csr.extensions] != [x509.SubjectAlternativeName]:
        return None
    names: x509.SubjectAlternativeName = csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    if not list(names) or any(not isinstance(each, x509.DNSName | x509.IPAddress) for each in names):
        return None
    if any(_is_address(each) for each in names.get_values_for_type(x509.DNSName)):
        return None  # an address in a DNS name entry
    return {_normal(str(each.value)) for each in names}


def names_of(node: Tree) -> set[str]:
    """DNS names and addresses that a Node has."""
    found = (node.get("status") or {}).get("addresses") or []
    kinds = NAMES | ADDRESSES
    return {_normal(str(each["address"])) for each in found if each.get("type") in kinds and each.get("address")}


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1 << 14)  # each request is compared with the names of all Nodes
def _normal(name: str) -> str:
    """One spelling for each name and address."""
    return str(ipaddress.ip_address(name)) if _is_address(name) else name.lower()


def approval(request: Tree, now: str) -> Tree:
    """A merge patch that approves the request, bound to the resourceVersion that was checked."""
    condition = {
        "type": "Approved",
        "status": "True",
        "reason": "ProtokubeApproved",
        "message": "every name in it is one of the Node's own",
        "lastUpdateTime": now,
    }
    version = request["metadata"].get("resourceVersion", "")
    return {"metadata": {"resourceVersion": version}, "status": {"conditions": [condition]}}
