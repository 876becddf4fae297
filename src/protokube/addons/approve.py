"""Decide which requests for a kubelet's serving certificate to approve: those for names that the Node has.

Kubernetes approves none of them itself, since it cannot know who owns a name. The default is to deny: a request is
approved only if no check fails. A Node reports its own addresses, so names of the control plane or of another Node are
denied whatever the Node reports.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from protokube.addons import csr
from protokube.addons.value import Tree

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "kubernetes.io/kubelet-serving"
USER, GROUP = csr.NODE_USER, csr.NODES
USAGES = ({"digital signature", "server auth"}, {"digital signature", "key encipherment", "server auth"})
"""Since 1.27 a kubelet with an elliptic-curve key requests the first set, all others the second."""
MESSAGE = "every name in it is one of the Node's own"
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
    return _why_not_content(spec.get("request"), user, names_of(nodes[name]), {*others, *map(csr.normal, reserved)})


def _why_not_content(encoded: Any, user: str, own: set[str], others: set[str]) -> str:
    try:
        content = csr.read(encoded)
    except csr.WrongRequest as why:
        return str(why)
    if content.user != user:
        return f"it is for {content.subject}"
    if not content.names:
        return "it asks for more than names" if content.names is None else "it asks for no name"
    if strange := sorted(content.names - own):
        return f"the Node does not have {', '.join(strange)}"
    if taken := sorted(content.names & others):
        return f"{', '.join(taken)} is not the Node's alone"
    return ""


def names_of(node: Tree) -> set[str]:
    """DNS names and addresses that a Node has."""
    found = (node.get("status") or {}).get("addresses") or []
    kinds = NAMES | ADDRESSES
    return {csr.normal(str(each["address"])) for each in found if each.get("type") in kinds and each.get("address")}


def approval(request: Tree, now: str, message: str = MESSAGE) -> Tree:
    """A merge patch that approves the request, bound to the resourceVersion that was checked."""
    condition = {
        "type": "Approved",
        "status": "True",
        "reason": "ProtokubeApproved",
        "message": message,
        "lastUpdateTime": now,
    }
    version = request["metadata"].get("resourceVersion", "")
    return {"metadata": {"resourceVersion": version}, "status": {"conditions": [condition]}}
