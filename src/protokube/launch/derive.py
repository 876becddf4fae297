"""Make the launch data of a master's agent from a complete configuration.

Separate from `machine`, which holds the types: an agent must not import the packages that complete a configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from protokube.config.complete import Config
from protokube.config.pki import member_dns_name, member_name
from protokube.config.podranges import pod_ranges
from protokube.launch import components
from protokube.launch.machine import EtcdCluster, KubeletConfig, MasterConfig, Member
from protokube.manifests.certificate import CertificateWanted
from protokube.manifests.etcd import EtcdPod
from protokube.manifests.text import as_yaml
from protokube.spec import version as versions
from protokube.spec.fields import seconds

GIGABYTE = 2**30
KUBELET_RELOADS = (versions.Version(1, 36), "ReloadKubeletServerCertificateFile")
"""The version since which a kubelet serves a reloaded certificate to all clients, and the gate that turns it off.

A kubelet of 1.31 to 1.35 reloads it, but serves the former one to clients without SNI, as API servers are: they connect
by address.
"""

Adapter = Callable[[dict[str, Any]], dict[str, Any]]


def from_config(config: Config, *, kubernetes: bool = True, nodes: bool | None = None) -> MasterConfig:
    """The part of a complete configuration that masters carry out; etcd and names alone without Kubernetes.

    `nodes`: whether masters have kubelets that run any pod; by default, everywhere but in the local cloud.
    """
    tree = config.cluster
    nodes = tree["cloud"] != "local" if nodes is None else nodes
    etcd = tuple(_etcd_cluster(config, key, fields, kubernetes) for key, fields in tree["etcdClusters"].items())
    certificates = {name: CertificateWanted.read(fields) for name, fields in tree["pki"]["certificates"].items()}
    whole = MasterConfig(
        cluster=config.name,
        api_internal_name=tree["masterInternalName"],
        api_public_name=tree["masterPublicName"],
        etcd=etcd,
        certificates=certificates,
        certificate_lifetime=seconds(tree["pki"]["certificateLifetime"]),
        key_pairs=tuple(tree["pki"]["keyPairs"]),
    )
    if not kubernetes:
        return whole
    return replace(
        whole,
        components=components.components(config, nodes=nodes),
        kubeconfigs=components.kubeconfigs(config, nodes=nodes),
        secret_files=components.secret_files(config),
        files=components.own_files(config.cluster),
        group_files=components.group_files(config),
        api_port=tree["kubeAPIServer"]["securePort"],
        kubelet_reloads=_kubelet_reloads(config),
        pod_ranges=pod_ranges(tree),
        node_labels={name: dict(group["nodeLabels"]) for name, group in config.groups.items()},
        node_taints={name: list(group["taints"]) for name, group in config.groups.items()},
        kubelets=master_kubelets(config) if nodes else {},
        kubernetes=tree["kubernetesVersion"],
    )


def master_kubelets(config: Config, adapt: Adapter = dict) -> dict[str, KubeletConfig]:
    """The kubelets of all groups of masters, by group."""
    masters = [name for name, group in config.groups.items() if group["role"] == "Master"]
    return {name: kubelet_of(config, name, adapt) for name in masters}


def kubelet_of(config: Config, group: str, adapt: Adapter = dict) -> KubeletConfig:
    """The kubelet of any group except bastions; `adapt` changes a configuration file for the machines of a cloud."""
    rendered = config.rendered[group]["kubelet"]
    files = {path: as_yaml(adapt(tree)) for path, tree in rendered["files"].items()}
    return KubeletConfig(flags=dict(rendered["flags"]), files=files, version=config.cluster["kubernetesVersion"])


def _kubelet_reloads(config: Config) -> bool:
    since, gate = KUBELET_RELOADS
    version = versions.parse(config.cluster["kubernetesVersion"]) or versions.DEFAULT
    kubelets = [config.cluster.get("kubelet"), config.cluster.get("masterKubelet")]
    kubelets += [group.get("kubelet") for group in config.groups.values()]
    gates = [(each or {}).get("featureGates") or {} for each in kubelets]
    return version >= since and not any(str(each.get(gate)).lower() == "false" for each in gates)


def _etcd_cluster(config: Config, key: str, fields: dict[str, Any], kubernetes: bool) -> EtcdCluster:
    rendered = config.rendered[""]["etcd"][key]
    first = rendered[next(iter(fields["members"]))]
    store = "etcd" if key == "main" else f"etcd-{key}"
    pod = EtcdPod(
        key=key,
        manifest=store,
        image=fields["image"],
        client_port=fields["clientPort"],
        peer_port=fields["peerPort"],
        metrics_port=fields["metricsPort"],
        data_dir=fields["dataDir"],
        config_file=first["env"]["ETCD_CONFIG_FILE"],
        environment=dict(first["env"]),
        cpu_request=fields["cpuRequest"],
        memory_request=fields["memoryRequest"],
    )
    maintenance = fields["maintenance"]
    members = tuple(_member(config, key, short, each, rendered[short]) for short, each in fields["members"].items())
    return EtcdCluster(
        key=key,
        pod=pod,
        members=members,
        token=fields["token"],
        replace_lost_volumes=fields["replaceLostVolumes"],
        compact=_may_compact(config, key, fields, kubernetes),
        rejoin_removed_after=seconds(maintenance["rejoinRemovedAfter"]) if maintenance["rejoinRemoved"] else None,
        version=fields["version"],
    )


def _may_compact(config: Config, key: str, etcd: dict[str, Any], kubernetes: bool) -> bool:
    """The default is for the etcd of a Kubernetes cluster; without one, only the user knows who reads old revisions."""
    origin = config.ledger.origin(f"etcdClusters.{key}.maintenance.compact")
    return bool(etcd["maintenance"]["compact"]) and (kubernetes or (origin is not None and origin.kind == "user"))


def _member(config: Config, key: str, short: str, fields: dict[str, Any], rendered: dict[str, Any]) -> Member:
    (settings,) = rendered["files"].values()
    return Member(
        short=short,
        name=member_name(key, short),
        dns_name=member_dns_name(config.cluster["masterInternalName"], key, short),
        peer_url=settings["initial-advertise-peer-urls"],
        client_url=settings["advertise-client-urls"],
        zone=fields.get("zone") or "",
        size=fields["volumeSize"] * GIGABYTE,
        group=fields.get("instanceGroup") or "",
        settings=dict(settings),
    )
