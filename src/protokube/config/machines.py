"""Settings of kubelets, kube-proxy and the container runtime, for every machine and for each role and group."""

from __future__ import annotations

from typing import Any

from protokube.config.controlplane import EVERYWHERE, FILE, VERBOSITY, in_tree_cloud
from protokube.config.draft import Draft
from protokube.config.images import CONTAINERD, COREDNS, PAUSE, by_version, image
from protokube.config.network import Inside
from protokube.config.places import DIRECTORY, own_folder
from protokube.config.podranges import mask_field
from protokube.spec.version import Version

EVICTION = (
    "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<10%,imagefs.inodesFree<5%"
)
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule"
OWN_LABEL_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
OWN_LABELS = (
    "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type", "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone", "kubernetes.io/arch",
    "kubernetes.io/hostname", "kubernetes.io/os", "node.kubernetes.io/instance-type", "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)  # fmt: skip
"""Of the labels under kubernetes.io and k8s.io, those a kubelet may set on its own node; others make it exit."""


def may_set_itself(label: str) -> bool:
    """Whether a kubelet may register with this label; the agent sets the others through the API."""
    domain = label.rpartition("/")[0]
    reserved = domain in ("kubernetes.io", "k8s.io") or domain.endswith((".kubernetes.io", ".k8s.io"))
    own = any(domain == each or domain.endswith(f".{each}") for each in OWN_LABEL_DOMAINS)
    return not reserved or own or label in OWN_LABELS


def complete_runtime(cluster: Draft, version: Version) -> str:
    """containerd, unless the user chooses Docker, which Kubernetes supports up to 1.23."""
    runtime = cluster.decide("containerRuntime", "containerd", "the runtime every version supports")
    if runtime == "containerd" or cluster.has("containerd"):
        containerd = cluster.under("containerd")
        at_version = cluster.at("kubernetesVersion")
        text = by_version(CONTAINERD, version)
        containerd.decide("version", text, f"goes with Kubernetes {version.short}", at_version)
        containerd.decide("address", "/run/containerd/containerd.sock", "its own default")
        pause, of = image(cluster, "pause", by_version(PAUSE, version))
        containerd.decide("sandboxImage", pause, f"goes with Kubernetes {version.short}", at_version, *of)
    return str(runtime)


def complete_cluster_dns(cluster: Draft, inside: Inside, version: Version) -> None:
    dns = cluster.under("clusterDNS")
    dns.decide("provider", "CoreDNS", "the DNS server of Kubernetes")
    dns.decide("domain", cluster.get("clusterDNSDomain"), "the cluster's", cluster.at("clusterDNSDomain"))
    address = (cluster.get("kubelet") or {}).get("clusterDNS")
    if address:
        dns.inherit("serverIP", str(address).partition(",")[0], cluster.at("kubelet.clusterDNS"))
    of = cluster.at("serviceClusterIPRange")
    dns.decide("serverIP", inside.dns_address, "the tenth address of the services' range", of)
    name = "coredns/coredns" if version >= (1, 21) else "coredns"
    text, registry = image(cluster, name, by_version(COREDNS, version))
    dns.decide("image", text, f"goes with Kubernetes {version.short}", cluster.at("kubernetesVersion"), *registry)
    dns.decide("replicas", 2, "DNS survives the loss of one")


def complete_proxy(cluster: Draft) -> None:
    proxy = cluster.under("kubeProxy")
    plugin = cluster.get("networking")
    replaced = plugin["plugin"] == "cilium" and bool((plugin.get("options") or {}).get("enableNodePort"))
    because = "cilium replaces it" if replaced else "services need it"
    proxy.decide("enabled", not replaced, because, cluster.at("networking"))
    if plugin["plugin"] != "amazonvpc":
        proxy.decide("clusterCIDR", cluster.get("podCIDR"), "the pods' range", cluster.at("podCIDR"))
    proxy.decide("kubeconfig", f"{own_folder('kube-proxy')}/kubeconfig", FILE)
    proxy.decide("proxyMode", "iptables", "works on every kernel we support")
    many = 0 if cluster.get("cloud") == "local" else 131072
    because = "allows many connections" if many else "hosts of the local cloud cannot change the kernel's limit"
    proxy.decide("conntrackMaxPerCore", many, because, cluster.at("cloud"))
    proxy.decide("metricsBindAddress", "127.0.0.1:10249", "only its own machine connects to it")
    probed = cluster.get("cloud") == "gce"
    because = "the cloud's load balancers probe every node" if probed else "only its own machine connects to it"
    health = f"{EVERYWHERE if probed else '127.0.0.1'}:10256"
    proxy.decide("healthzBindAddress", health, because, cluster.at("cloud"))
    proxy.decide("logLevel", VERBOSITY, "enough to investigate an incident")
    proxy.decide("cpuRequest", "100m", "what it needs when idle")


def complete_kubelet(cluster: Draft, cloud: str, version: Version, runtime: str) -> None:
    """Settings of every kubelet."""
    kubelet = cluster.under("kubelet")
    kubelet.decide("anonymousAuth", False, "every request has to be authenticated")
    kubelet.decide("authenticationTokenWebhook", True, "the API server authenticates requests")
    kubelet.decide("authorizationMode", "Webhook", "the API server authorizes requests")
    kubelet.decide("clientCaFile", f"{DIRECTORY}/ca.crt", FILE)
    driver = "cgroupfs" if cloud == "local" else "systemd"
    because = "hosts of the local cloud have no systemd" if cloud == "local" else "systemd manages the cgroups"
    kubelet.decide("cgroupDriver", driver, because, cluster.at("cloud"))
    if cloud == "local":
        kubelet.decide("failSwapOn", False, "a laptop may swap", cluster.at("cloud"))
    if cloud == "local" and version >= (1, 31):
        kubelet.decide("failCgroupV1", False, "a laptop may still use cgroup v1", cluster.at("cloud"))
    dns = cluster.get("clusterDNS")
    kubelet.decide("clusterDNS", dns["serverIP"], "the cluster's DNS server", cluster.at("clusterDNS.serverIP"))
    kubelet.decide("clusterDomain", cluster.get("clusterDNSDomain"), "the cluster's", cluster.at("clusterDNSDomain"))
    of_runtime = cluster.at("containerRuntime")
    if runtime == "containerd":
        address = f"unix://{cluster.get('containerd')['address']}"
        kubelet.decide("containerRuntimeEndpoint", address, "the runtime's socket", cluster.at("containerd.address"))
        if version < (1, 24):
            kubelet.decide("containerRuntime", "remote", "a runtime behind a socket, not Docker", of_runtime)
    elif version < (1, 24):
        kubelet.decide("containerRuntime", "docker", "the cluster's runtime", of_runtime)
        plugin = "kubenet" if cluster.get("networking")["plugin"] == "kubenet" else "cni"
        kubelet.decide("networkPluginName", plugin, "the pod network", cluster.at("networking.plugin"))
    if in_tree_cloud(cluster, cloud, version):
        of = (cluster.at("cloud"), cluster.at("kubernetesVersion"))
        kubelet.decide("cloudProvider", cloud, "built into this version", *of)
    elif cluster.has("cloudControllerManager") and not marked_by_taint(cluster, version):
        because = "a cloud controller manager is configured"
        kubelet.decide("cloudProvider", "external", because, cluster.at("cloudControllerManager"))
    kubelet.decide("evictionHard", EVICTION, "keeps memory and disk free for the machine itself")
    kubelet.decide("kubeconfigPath", "/var/lib/kubelet/kubeconfig", FILE)
    kubelet.decide("logLevel", VERBOSITY, "enough to investigate an incident")
    manager = cluster.get("kubeControllerManager") or {}
    field = mask_field(manager, 4)
    mask = manager.get(field, 24)
    room = min(110, 2 ** (32 - mask) - 4) if isinstance(mask, int) and mask <= 28 else 110
    because = "what Kubernetes is tested with" if room == 110 else "the number of addresses in the node's pod range"
    of_mask = () if room == 110 else (cluster.at(f"kubeControllerManager.{field}"),)
    kubelet.decide("maxPods", room, because, *of_mask)
    kubelet.decide("podManifestPath", "/etc/kubernetes/manifests", "as in the original")
    kubelet.decide("readOnlyPort", 0, "no port is open without TLS")
    kubelet.decide("registerNode", True, "the machine registers itself as a node")
    kubelet.decide("rotateCertificates", True, "it renews its certificate in time")
    cluster.decide("masterKubelet", {}, "no further settings for masters")


def complete_group_runtime(group: Draft, cluster: Draft) -> None:
    """A group with runtime settings of its own inherits the others from the cluster."""
    if group.has("containerd"):
        for name, value in (cluster.get("containerd") or {}).items():
            group.under("containerd").inherit(name, value, cluster.at(f"containerd.{name}"))


def marked_by_taint(cluster: Draft, version: Version) -> bool:
    """Whether nodes get the `uninitialized` taint directly: here kubelet's --cloud-provider is deprecated."""
    return cluster.has("cloudControllerManager") and (1, 24) <= version < (1, 32)


def complete_group_kubelet(group: Draft, cluster: Draft, external_taint: bool) -> None:
    """A group's kubelet: the group's settings, then those of masters, then those of all kubelets."""
    kubelet = group.under("kubelet")
    role = group.get("role")
    labels = {key: value for key, value in group.get("nodeLabels").items() if may_set_itself(key)}
    taints = list(group.get("taints"))
    layers = ["kubelet"] if role != "Master" else ["masterKubelet", "kubelet"]
    flagged = kubelet.has("cloudProvider")
    for layer in layers:
        settings: dict[str, Any] = cluster.get(layer) or {}
        labels = {**(settings.get("nodeLabels") or {}), **labels}
        taints += [each for each in settings.get("taints") or [] if each not in taints]
        # with the flag kubelet adds the taint itself; API servers refuse a duplicate taint
        flagged |= "cloudProvider" in settings
    if external_taint and UNINITIALIZED not in taints and not flagged:
        taints.append(UNINITIALIZED)
    if labels:
        kubelet.decide("nodeLabels", labels, "the group's labels that a kubelet may set itself", group.at("nodeLabels"))
    if taints:
        kubelet.decide("taints", taints, "the group's taints", group.at("taints"))
    for layer in layers:
        for name, value in (cluster.get(layer) or {}).items():
            kubelet.inherit(name, value, cluster.at(f"{layer}.{name}"))
    _serving(kubelet, group.at("role"), is_master=role == "Master")
    if role == "Node":
        because = "a new node requests its certificate with it"
        kubelet.decide("bootstrapKubeconfig", "/var/lib/kubelet/bootstrap-kubeconfig", because, group.at("role"))


def _serving(kubelet: Draft, of_role: str, *, is_master: bool) -> None:
    """The serving certificate of a kubelet: on a master the agent issues it; elsewhere the kubelet requests one."""
    if is_master and not kubelet.get("serverTLSBootstrap"):
        kubelet.decide("tlsCertFile", f"{DIRECTORY}/kubelet-server.crt", FILE, of_role)
        kubelet.decide("tlsPrivateKeyFile", f"{DIRECTORY}/kubelet-server.key", FILE, of_role)
    elif not kubelet.get("tlsCertFile"):  # with both, it would serve either certificate at random
        because = "it requests its serving certificate, and the agents approve the request"
        kubelet.decide("serverTLSBootstrap", True, because, of_role)
