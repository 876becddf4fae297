"""Which requests for a kubelet's serving certificate are right: those for names that the Node really has.

Kubernetes approves none of them by itself, since it cannot know whose a name is. Everything here speaks for "no": a
request is right only if nothing is wrong with it. A Node says itself which addresses it has, so what belongs to the
control plane, or to another Node, is given to no Node, whatever it says.
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
"""Since 1.27 a kubelet with an elliptic key asks for the first, all others for the second."""
NAMES = {"Hostname", "InternalDNS", "ExternalDNS"}
ADDRESSES = {"InternalIP", "ExternalIP"}


def is_open(request: Tree) -> bool:
    """Nobody has decided about it yet."""
    status = request.get("status") or {}
    return not status.get("conditions") and not status.get("certificate")


def why_not(request: Tree, nodes: Mapping[str, Tree], reserved: Collection[str] = ()) -> str:
    """What speaks against a request; nothing if it may be approved. `reserved` names belong to no Node."""
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
        asked = x509.load_pem_x509_csr(b64decode(encoded, validate=True))
        if not asked.is_signature_valid:
            return "it is not signed by its own key"
        subject = {(each.oid.dotted_string, str(each.value)) for each in asked.subject}
        said, count = _names_asked(asked), len(list(asked.subject))
    except (ValueError, TypeError, binascii.Error, x509.ExtensionNotFound, x509.DuplicateExtension) as error:
        return f"it cannot be read: {error}"
    except x509.UnsupportedGeneralNameType as error:
        return f"it asks for a name of an unknown kind: {error}"
    oid = x509.oid.NameOID
    if subject != {(oid.COMMON_NAME.dotted_string, user), (oid.ORGANIZATION_NAME.dotted_string, GROUP)} or count != 2:
        return f"it is for {asked.subject.rfc4514_string()}"
    if said is None:
        return "it asks for more than names"
    if strange := sorted(said - own):
        return f"the Node does not have {', '.join(strange)}"
    if taken := sorted(said & others):
        return f"{', '.join(taken)} is not the Node's alone"
    return ""


def _names_asked(asked: x509.CertificateSigningRequest) -> set[str] | None:
    """The names; None if it asks for anything else, or for none."""
    from cryptography import x509

    if [type(each.value) for each in asked.extensions] != [x509.SubjectAlternativeName]:
        return None
    names: x509.SubjectAlternativeName = asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    if not list(names) or any(not isinstance(each, x509.DNSName | x509.IPAddress) for each in names):
        return None
    if any(_is_address(each) for each in names.get_values_for_type(x509.DNSName)):
        return None  # an address that is said to be a name
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


@lru_cache(maxsize=1 << 14)  # for each request, the names of all Nodes are looked at
def _normal(name: str) -> str:
    """One spelling for each name and address."""
    return str(ipaddress.ip_address(name)) if _is_address(name) else name.lower()


def approval(request: Tree, now: str) -> Tree:
    """A merge patch for the request's approval, of the very version that was judged."""
    condition = {
        "type": "Approved",
        "status": "True",
        "reason": "ProtokubeApproved",
        "message": "every name in it is one of the Node's own",
        "lastUpdateTime": now,
    }
    version = request["metadata"].get("resourceVersion", "")
    return {"metadata": {"resourceVersion": version}, "status": {"conditions": [condition]}}
