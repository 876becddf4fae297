"""Real requests for certificates, as kubelets and liars make them."""

from __future__ import annotations

import copy
import ipaddress
from base64 import b64encode
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from protokube.addons.value import Tree

KEY = ec.generate_private_key(ec.SECP256R1())
NAME = "node-1"
DNS, IP, OTHER = "node-1.example", "10.0.0.7", "10.0.0.8"
RIGHT: dict[str, Any] = {
    "signerName": "kubernetes.io/kubelet-serving",
    "username": f"system:node:{NAME}",
    "groups": ["system:nodes", "system:authenticated"],
    "usages": ["digital signature", "key encipherment", "server auth"],
}

JOINING: dict[str, Any] = {
    "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
    "username": "system:bootstrap:abcdef",
    "groups": ["system:bootstrappers", "system:authenticated"],
    "usages": ["digital signature", "client auth"],
}
"""The first request of a new node, by a token."""


def a_node(*addresses: tuple[str, str]) -> Tree:
    return {"status": {"addresses": [{"type": kind, "address": address} for kind, address in addresses]}}


NODES = {
    NAME: a_node(("InternalIP", IP), ("Hostname", DNS), ("ExternalIP", "2001:db8::7")),
    "node-2": a_node(("InternalIP", OTHER), ("Hostname", "node-2.example")),
}
SHARED = {**NODES, NAME: a_node(("InternalIP", IP), ("Hostname", DNS), ("InternalIP", OTHER))}


@cache
def content(
    common_name: str = f"system:node:{NAME}",
    organizations: tuple[str, ...] = ("system:nodes",),
    dns: tuple[str, ...] = (DNS,),
    ips: tuple[str, ...] = (IP,),
    uris: tuple[str, ...] = (),
    is_ca: bool = False,
    unit: str = "",
) -> str:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else []
    parts += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    parts += [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)] if unit else []
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts))
    names: list[x509.GeneralName] = [x509.DNSName(each) for each in dns]
    names += [x509.IPAddress(ipaddress.ip_address(each)) for each in ips]
    names += [x509.UniformResourceIdentifier(each) for each in uris]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if is_ca:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    pem = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return b64encode(pem).decode()


def a_request(request: str = "", **spec: Any) -> Tree:
    told = {**copy.deepcopy(RIGHT), "request": request or content(), **spec}
    return {"metadata": {"name": "csr-1", "resourceVersion": "5"}, "spec": told}


def a_first_request(request: str = "", name: str = "csr-1", **spec: Any) -> Tree:
    told = {**copy.deepcopy(JOINING), "request": request or content(dns=(), ips=()), **spec}
    return {"metadata": {"name": name, "resourceVersion": "5"}, "spec": told}
