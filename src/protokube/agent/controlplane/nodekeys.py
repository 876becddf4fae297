"""The kubelet's client and serving certificates, and its kubeconfig.

The kubelet authenticates as `system:node:NAME`, and the node authorizer limits it to its own node; so the certificate
is issued here, for this machine's name. Needed before the kubelet starts, with or without an etcd member.
"""

from __future__ import annotations

from dataclasses import replace

from protokube.agent.controlplane import keys
from protokube.agent.round import Round
from protokube.host.files import write_atomic
from protokube.launch.machine import MasterConfig
from protokube.manifests import kubeconfig
from protokube.manifests.certificate import CertificateWanted
from protokube.manifests.etcd import PKI
from protokube.pki.shared import CLUSTER_AUTHORITY
from protokube.providers.machines import Machine

STEP = "nodekeys"
CLIENT, SERVER = "kubelet", "kubelet-server"
PRIVATE = 0o600


def with_node(wanted: MasterConfig, me: Machine) -> MasterConfig:
    """Add the certificates of this machine's kubelet to the configuration; unchanged without a kubelet."""
    if not wanted.kubelet_kubeconfig:
        return wanted
    return replace(wanted, certificates={**wanted.certificates, **certificates(me)})


def certificates(me: Machine) -> dict[str, CertificateWanted]:
    client = CertificateWanted(
        authority=CLUSTER_AUTHORITY,
        common_name=f"system:node:{me.name}",
        organizations=("system:nodes",),
        usages=("client auth",),
    )
    names = tuple(dict.fromkeys((me.name, me.address)))
    return {CLIENT: client, SERVER: replace(client, names=names, usages=("server auth",))}


def sync(round_: Round) -> None:
    wanted = round_.wanted
    if not wanted.kubelet_kubeconfig:
        return
    keys.ensure_shared(round_)
    keys.ensure(round_, [CLIENT, SERVER])
    text = kubeconfig.by_files(
        wanted.cluster,
        wanted.kubelet_api or f"https://127.0.0.1:{wanted.api_port}",
        f"system:node:{round_.edges.me.name}",
        ca=f"{PKI}/ca.crt",
        certificate=f"{PKI}/{CLIENT}.crt",
        key=f"{PKI}/{CLIENT}.key",
    )
    place = round_.edges.inside(wanted.kubelet_kubeconfig)
    place.parent.mkdir(parents=True, exist_ok=True)
    if write_atomic(place, text.encode(), PRIVATE):
        round_.report.done(STEP, f"{wanted.kubelet_kubeconfig} written")
