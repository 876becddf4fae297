"""Keys and certificates: their authorities, subjects, names and usages.

etcd has its own authorities, so that no certificate of a kubelet or a user gives access to etcd. A certificate contains
only the names under which its holder is reached.
"""

from __future__ import annotations

from typing import Any

from protokube.config.draft import Draft
from protokube.config.network import Inside
from protokube.spec.decode import Tree
from protokube.spec.fields import seconds

SHORTEST_FOR_COMPONENTS = "30m"
"""A certificate is renewed when at least a quarter of its lifetime is left; that has to exceed five minutes."""
LOOPBACK = ["localhost", "127.0.0.1"]
AUTHORITIES = {
    "kubernetes-ca": "clients and servers of the cluster",
    "front-proxy-ca": "the API server, when it passes a request on to an aggregated one",
    "etcd-peer-ca": "etcd members among themselves",
    "etcd-client-ca": "clients of etcd, and etcd towards them",
}
CLIENTS: dict[str, tuple[str, str, list[str]]] = {
    "kube-controller-manager": ("kubernetes-ca", "system:kube-controller-manager", []),
    "kube-scheduler": ("kubernetes-ca", "system:kube-scheduler", []),
    "kube-proxy": ("kubernetes-ca", "system:kube-proxy", []),
    "dns-controller": ("kubernetes-ca", "system:dns-controller", []),
    "protokube": ("kubernetes-ca", "protokube", ["system:masters"]),
    "kube-apiserver-kubelet-client": ("kubernetes-ca", "kube-apiserver", []),
    "front-proxy-client": ("front-proxy-ca", "front-proxy-client", []),
    "kube-apiserver-etcd-client": ("etcd-client-ca", "kube-apiserver", []),
    "protokube-etcd-client": ("etcd-client-ca", "protokube", []),
}


def complete_pki(cluster: Draft, inside: Inside) -> None:
    """Every authority and certificate of the control plane; those of kubelets are issued per machine."""
    pki = cluster.under("pki")
    authorities = {name: {"commonName": name, "purpose": purpose} for name, purpose in AUTHORITIES.items()}
    pki.decide("authorities", authorities, "etcd has its own, separate from the cluster's")
    pki.decide("keyPairs", ["service-account"], "signs the tokens of service accounts")
    life = pki.decide("certificateLifetime", "8760h", "a year; agents renew certificates long before they expire")
    if seconds(life) < seconds(SHORTEST_FOR_COMPONENTS):
        message = f"Kubernetes components reload certificates only every five minutes: with {life} they are restarted"
        hint = f"{SHORTEST_FOR_COMPONENTS} or longer; etcd needs no restart"
        pki.ledger.warn(pki.at("certificateLifetime"), message, hint)
    of = [cluster.at(each) for each in ("masterInternalName", "masterPublicName", "additionalSans", "etcdClusters")]
    certificates = {name: _certificate(*client, names=[], usages=["client auth"]) for name, client in CLIENTS.items()}
    certificates["kube-apiserver"] = _server(cluster, inside)
    for key, etcd in cluster.each("etcdClusters"):
        for short, _ in etcd.each("members"):
            certificates |= _member(cluster, key, short)
    pki.decide("certificates", certificates, "one for each client and server", *of)


def _certificate(
    authority: str, common_name: str, organizations: list[str], *, names: list[str], usages: list[str]
) -> Tree:
    subject: dict[str, Any] = {"authority": authority, "commonName": common_name, "organizations": organizations}
    return subject | {"names": names, "usages": usages}


def _server(cluster: Draft, inside: Inside) -> Tree:
    domain = cluster.get("clusterDNSDomain")
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{domain}"]
    names += [cluster.get("masterInternalName"), cluster.get("masterPublicName"), *cluster.get("additionalSans")]
    names += [inside.api_address, *LOOPBACK]
    unique = list(dict.fromkeys(names))
    return _certificate("kubernetes-ca", "kube-apiserver", [], names=unique, usages=["server auth"])


def _member(cluster: Draft, key: str, short: str) -> Tree:
    """A peer certificate and a serving one, both for the member's own name and loopback, never a wildcard."""
    name = member_dns_name(cluster.get("masterInternalName"), key, short)
    content = {"names": [name, *LOOPBACK], "usages": ["server auth", "client auth"]}
    return {
        f"{member_name(key, short)}-peer": _certificate("etcd-peer-ca", name, [], **content),
        f"{member_name(key, short)}-server": _certificate("etcd-client-ca", name, [], **content),
    }


def member_name(key: str, short: str) -> str:
    """`etcd-a`, `etcd-events-a`."""
    return f"etcd-{short}" if key == "main" else f"etcd-{key}-{short}"


def member_dns_name(internal_name: str, key: str, short: str) -> str:
    """`etcd-a.internal.CLUSTER`: in the domain of `masterInternalName`, such as `api.internal.CLUSTER`."""
    return f"{member_name(key, short)}.{internal_name.removeprefix('api.')}"
