"""Render the control plane components of a complete configuration into the launch data of a master's agent."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from protokube.config import dnscontroller, files
from protokube.config.complete import Config
from protokube.config.flags import COMPONENTS
from protokube.config.places import own_folder
from protokube.launch.machine import FileText
from protokube.manifests.component import PROGRAMS, ComponentPod
from protokube.manifests.text import as_yaml

TRUSTED_BY_THE_WORLD = "/etc/ssl/certs"
CONTROL_PLANE = ("kubeAPIServer", "kubeControllerManager", "kubeScheduler")
EXTERNAL, INTERNAL = "dns.alpha.kubernetes.io/external", "dns.alpha.kubernetes.io/internal"
CONTROLLER_MANAGER_PORT, SCHEDULER_PORT, PROXY_HEALTH_PORT, DNS_METRICS_PORT = 10257, 10259, 10256, 3991
MODULES = "/lib/modules"
FROM_SECRET = "fromSecret"  # noqa: S105 (a key of the configuration)


def components(config: Config, *, nodes: bool = False) -> tuple[ComponentPod, ...]:
    """The control plane; on masters that are nodes, and so run pods, also kube-proxy."""
    found = [_component(config, field) for field in CONTROL_PLANE]
    if dnscontroller.runs(config.cluster):
        found.append(_dns_controller(config.cluster["dnsController"]))
    return (*found, _proxy(config)) if nodes and has_proxy(config) else tuple(found)


def has_proxy(config: Config) -> bool:
    """False where the network plugin replaces kube-proxy."""
    return bool(config.cluster["kubeProxy"]["enabled"])


def _plain(config: Config, field: str) -> ComponentPod:
    """The fields that all components have."""
    fields, rendered = config.cluster[field], config.rendered[""][field]
    return ComponentPod(
        name=COMPONENTS[field],
        image=fields["image"],
        flags=rendered["flags"],
        cpu_request=fields.get("cpuRequest") or "",
        memory_request=fields.get("memoryRequest") or "",
        files={path: as_yaml(tree) for path, tree in rendered.get("files", {}).items() if FROM_SECRET not in tree},
    )


def _component(config: Config, field: str) -> ComponentPod:
    return replace(
        _plain(config, field),
        annotations=_names(config) if field == "kubeAPIServer" else {},
        also_reads=(TRUSTED_BY_THE_WORLD, own_folder(COMPONENTS[field])),
        probe=_probe(field, config.cluster[field]),
    )


def _proxy(config: Config) -> ComponentPod:
    kubeconfig = config.cluster["kubeProxy"]["kubeconfig"]
    return replace(
        _plain(config, "kubeProxy"),
        # its configuration file names its kubeconfig, not a flag, and the kubeconfig names its keys
        also_reads=(str(PurePosixPath(kubeconfig).parent), own_folder("kube-proxy"), MODULES),
        also_writes=("/run",),  # the lock that all writers of iptables rules share
        probe={"httpGet": {"host": "127.0.0.1", "port": PROXY_HEALTH_PORT, "path": "/healthz"}},
        privileged=True,
    )


def _dns_controller(config: dict[str, Any]) -> ComponentPod:
    """One on each master; the elected one writes."""
    flags = {
        "dns": config["provider"], "zone": config.get("zones"), "server": config.get("server"),
        "key-file": config.get("keyFile"), "watch-namespace": config.get("watchNamespace"),
        "kubeconfig": config["kubeconfig"],
    }  # fmt: skip
    ingresses = ("--watch-ingress",) if config["watchIngress"] else ()
    return ComponentPod(
        name=dnscontroller.NAME,
        image=config["image"],
        program=(f"{PROGRAMS}/protokube", "dns-controller", *ingresses),
        flags={name: value for name, value in flags.items() if value},
        cpu_request="50m",
        memory_request="64Mi",
        also_reads=(own_folder(dnscontroller.NAME),),  # its kubeconfig names its keys
        probe={"httpGet": {"host": "127.0.0.1", "port": DNS_METRICS_PORT, "path": "/metrics"}},
    )


def _names(config: Config) -> dict[str, str]:
    """Annotations for the dns-controller, which takes these names over from the agents where one runs."""
    tree = config.cluster
    return {EXTERNAL: tree["masterPublicName"], INTERNAL: tree["masterInternalName"]}


def _probe(field: str, fields: dict[str, Any]) -> dict[str, Any]:
    match field:
        case "kubeAPIServer":
            # anonymous requests are refused, and a kubelet's probe is anonymous: it can only check the port
            return {"tcpSocket": {"host": "127.0.0.1", "port": fields["securePort"]}}
        case "kubeControllerManager":
            port = fields.get("securePort") or CONTROLLER_MANAGER_PORT
        case _:
            port = fields.get("securePort") or SCHEDULER_PORT
    return {"httpGet": {"scheme": "HTTPS", "host": "127.0.0.1", "port": port, "path": "/healthz"}}


def kubeconfigs(config: Config, *, nodes: bool = False) -> dict[str, str]:
    """By path of the kubeconfig: its user, whose certificate it names."""
    fields = ["kubeControllerManager", "kubeScheduler", *(["kubeProxy"] if nodes and has_proxy(config) else [])]
    found = {config.cluster[field]["kubeconfig"]: COMPONENTS[field] for field in fields}
    if dnscontroller.runs(config.cluster):
        found[config.cluster["dnsController"]["kubeconfig"]] = dnscontroller.NAME
    return found


def secret_files(config: Config) -> dict[str, str]:
    files = config.rendered[""]["kubeAPIServer"].get("files", {})
    found = {path: tree[FROM_SECRET] for path, tree in files.items() if FROM_SECRET in tree}
    controller = config.cluster["dnsController"]
    if dnscontroller.runs(config.cluster) and controller.get("keyFile"):
        found[controller["keyFile"]] = dnscontroller.KEY_SECRET
    return found


def own_files(holder: dict[str, Any]) -> dict[str, FileText]:
    """The user's `fileAssets` that are for masters: of a cluster, or of a group of masters."""
    found = {}
    for name, asset in (holder.get("fileAssets") or {}).items():
        if files.is_for(asset, "Master"):
            text = b64encode(files.content(asset)).decode()
            found[files.place(name, asset)] = FileText(text=text, mode=files.mode(asset))
    return found


def group_files(config: Config) -> dict[str, dict[str, FileText]]:
    """`fileAssets` by group of masters; machines of other groups are not brought up yet."""
    masters = {name: group for name, group in config.groups.items() if group["role"] == "Master"}
    return {name: found for name, group in masters.items() if (found := own_files(group))}
