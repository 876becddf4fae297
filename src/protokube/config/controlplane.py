"""Settings of the API server, the controller manager and the scheduler.

They share a machine and talk over 127.0.0.1 with certificates; no port is open without TLS.
"""

from __future__ import annotations

from protokube.config.access import complete_access
from protokube.config.draft import Draft
from protokube.config.flags import COMPONENTS
from protokube.config.images import image
from protokube.config.network import Inside
from protokube.config.places import own_folder
from protokube.config.podranges import MASK, mask_field
from protokube.spec.version import Version

CONFIG_DIRECTORY = "/etc/kubernetes/config"
"""Configuration of kubelets and etcd; every other component has its own directory."""
OF_API, OF_MANAGER, OF_SCHEDULER = map(own_folder, ("kube-apiserver", "kube-controller-manager", "kube-scheduler"))
AUDIT_POLICY_FILE = f"{OF_API}/audit-policy.yaml"
ADMISSION_FILE = f"{OF_API}/admission.yaml"
AUTHENTICATION_FILE = f"{OF_API}/authentication.yaml"
ENCRYPTION_FILE = f"{OF_API}/encryption.yaml"
FILE = "the path that nodeup writes"
VERBOSITY = 2
EVERYWHERE = "0.0.0.0"  # noqa: S104  # with TLS and client certificates; nodes and people reach it by name

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version", "/openapi*"]},
        {"level": "None", "resources": [{"group": "", "resources": ["events"]}]},
        {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
        {"level": "None", "users": ["system:kube-proxy"], "verbs": ["watch"]},
        {"level": "Metadata"},
    ],
}
"""Metadata of requests without their content: secrets must not end up in a log."""


def in_tree_cloud(cluster: Draft, cloud: str, version: Version) -> bool:
    """Up to 1.23 Kubernetes uses its in-tree AWS and GCE providers, unless a cloud controller manager is configured."""
    return cloud in ("aws", "gce") and version < (1, 24) and not cluster.has("cloudControllerManager")


def complete_images(cluster: Draft, version: Version) -> None:
    """The images of everything that Kubernetes releases as one."""
    for field in ("kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy"):
        text, of = image(cluster, COMPONENTS[field], f"v{version}")
        because = f"the image of Kubernetes {version}"
        cluster.under(field).decide("image", text, because, cluster.at("kubernetesVersion"), *of)


def complete_apiserver(cluster: Draft, cloud: str, version: Version) -> None:
    api = cluster.under("kubeAPIServer")
    etcd = {key: each.get("clientPort") for key, each in cluster.each("etcdClusters")}
    of_etcd = cluster.at("etcdClusters")
    api.decide("allowPrivileged", True, "kube-proxy and network add-ons need it")
    complete_access(cluster, api, version)
    plugins = ["NodeRestriction", *(api.get("appendAdmissionPlugins") or [])]
    because = "a node may change only its own objects; the other plugins are on by default"
    api.decide("enableAdmissionPlugins", plugins, because, *_if(api, "appendAdmissionPlugins"))
    api.decide("bindAddress", EVERYWHERE, "every address of the master")
    api.decide("clientCAFile", f"{OF_API}/ca.crt", FILE)
    if in_tree_cloud(cluster, cloud, version):
        of = (cluster.at("cloud"), cluster.at("kubernetesVersion"))
        api.decide("cloudProvider", cloud, "built into this version", *of)
    api.decide("enableBootstrapTokenAuth", True, "new nodes authenticate with a bootstrap token")
    if "main" in etcd:
        servers = [f"https://127.0.0.1:{etcd['main']}"]
        api.decide("etcdServers", servers, "the member on the same master", f"{of_etcd}.main.clientPort")
    if "events" in etcd:
        overrides = [f"/events#https://127.0.0.1:{etcd['events']}"]
        because = "events have their own etcd cluster"
        api.decide("etcdServersOverrides", overrides, because, f"{of_etcd}.events.clientPort")
    api.decide("etcdCaFile", f"{OF_API}/etcd-client-ca.crt", FILE)
    api.decide("etcdCertFile", f"{OF_API}/kube-apiserver-etcd-client.crt", FILE)
    api.decide("etcdKeyFile", f"{OF_API}/kube-apiserver-etcd-client.key", FILE)
    api.decide("kubeletCertificateAuthority", f"{OF_API}/ca.crt", FILE)
    api.decide("kubeletClientCertificate", f"{OF_API}/kube-apiserver-kubelet-client.crt", FILE)
    api.decide("kubeletClientKey", f"{OF_API}/kube-apiserver-kubelet-client.key", FILE)
    types = ["InternalIP", "Hostname", "ExternalIP"]
    api.decide("kubeletPreferredAddressTypes", types, "the address inside the network first")
    api.decide("logLevel", VERBOSITY, "enough to investigate an incident")
    api.decide("enableProfiling", False, "profiling exposes memory contents")
    api.decide("proxyClientCertFile", f"{OF_API}/front-proxy-client.crt", FILE)
    api.decide("proxyClientKeyFile", f"{OF_API}/front-proxy-client.key", FILE)
    api.decide(
        "requestheaderAllowedNames", ["front-proxy-client"], "the only client that may set the user of a request"
    )
    api.decide("requestheaderClientCAFile", f"{OF_API}/front-proxy-ca.crt", FILE)
    api.decide("requestheaderExtraHeaderPrefixes", ["X-Remote-Extra-"], "the usual header of aggregated API servers")
    api.decide("requestheaderGroupHeaders", ["X-Remote-Group"], "the usual header of aggregated API servers")
    api.decide("requestheaderUsernameHeaders", ["X-Remote-User"], "the usual header of aggregated API servers")
    api.decide("securePort", 443, "the port of the original")
    _service_accounts(cluster, api)
    services = cluster.at("serviceClusterIPRange")
    api.decide("serviceClusterIPRange", cluster.get("serviceClusterIPRange"), "the cluster's", services)
    api.decide("serviceNodePortRange", "30000-32767", "the usual one")
    api.decide("storageBackend", "etcd3", "the only one")
    api.decide("tlsCertFile", f"{OF_API}/kube-apiserver.crt", FILE)
    api.decide("tlsPrivateKeyFile", f"{OF_API}/kube-apiserver.key", FILE)
    api.decide("cpuRequest", "150m", "what it needs when idle")
    _audit(api)
    _files(cluster, api)


def _service_accounts(cluster: Draft, api: Draft) -> None:
    issuer, of = f"https://{cluster.get('masterInternalName')}", cluster.at("masterInternalName")
    discovery = cluster.get("serviceAccountIssuerDiscovery") or {}
    if str(discovery.get("discoveryStore", "")).startswith("s3://"):
        bucket, _, prefix = discovery["discoveryStore"].removeprefix("s3://").partition("/")
        of = cluster.at("serviceAccountIssuerDiscovery.discoveryStore")
        issuer = f"https://{bucket}.s3.{cluster.get('region')}.amazonaws.com/{prefix}".rstrip("/")
    # without it, API servers publish their own addresses, which are in no certificate
    api.decide("serviceAccountJWKSURI", f"{issuer}/openid/v1/jwks", "where the public keys are published", of)
    api.decide("serviceAccountIssuer", issuer, "the issuer of service account tokens", of)
    audiences = [api.get("serviceAccountIssuer"), *(discovery.get("additionalAudiences") or [])]
    if len(audiences) > 1:
        api.decide("apiAudiences", audiences, "the issuer and the additional audiences", of)
    api.decide("serviceAccountKeyFile", [f"{OF_API}/service-account.pub"], FILE)
    api.decide("serviceAccountSigningKeyFile", f"{OF_API}/service-account.key", FILE)


def _audit(api: Draft) -> None:
    """Auditing is on by default, with bounded disk usage; an empty `auditLogPath` turns it off."""
    if not api.decide("auditLogPath", "/var/log/kube-audit/audit.log", "audits need a log of what happened"):
        return
    if not api.has("auditPolicyFile"):
        api.decide("auditPolicy", AUDIT_POLICY, "metadata of requests, without their content")
        api.decide("auditPolicyFile", AUDIT_POLICY_FILE, "where the policy is written", api.at("auditPolicy"))
    api.decide("auditLogMaxAge", 30, "days; bounds the log", api.at("auditLogPath"))
    api.decide("auditLogMaxBackups", 10, "files; bounds the log", api.at("auditLogPath"))
    api.decide("auditLogMaxSize", 100, "megabytes; bounds the log", api.at("auditLogPath"))


def _files(cluster: Draft, api: Draft) -> None:
    """A document in the spec is written to a file, and the flag points there."""
    if api.has("admissionConfiguration"):
        of = api.at("admissionConfiguration")
        api.decide("admissionControlConfigFile", ADMISSION_FILE, "where it is written", of)
    if api.has("authenticationConfiguration"):
        of = api.at("authenticationConfiguration")
        api.decide("authenticationConfigFile", AUTHENTICATION_FILE, "where it is written", of)
    if cluster.get("encryptionConfig"):
        of = cluster.at("encryptionConfig")
        api.decide(
            "encryptionProviderConfig", ENCRYPTION_FILE, "secrets are encrypted; the key is in the state store", of
        )


def complete_controller_manager(cluster: Draft, inside: Inside, cloud: str, version: Version, name: str) -> None:
    manager = cluster.under("kubeControllerManager")
    home = f"{OF_MANAGER}/kubeconfig"
    manager.decide("allocateNodeCIDRs", True, "each node gets a part of the pods' range")
    manager.decide("authenticationKubeconfig", home, FILE)
    manager.decide("authorizationKubeconfig", home, FILE)
    manager.decide("kubeconfig", home, FILE)
    manager.decide("bindAddress", "127.0.0.1", "only its own machine connects to it")
    manager.decide("clientCAFile", f"{OF_MANAGER}/ca.crt", FILE)
    if in_tree_cloud(cluster, cloud, version):
        of = (cluster.at("cloud"), cluster.at("kubernetesVersion"))
        manager.decide("cloudProvider", cloud, "built into this version", *of)
        plugin = cluster.get("networking")["plugin"]
        routes = plugin == "kubenet"
        because = "the cloud routes traffic between nodes" if routes else f"{plugin} routes traffic itself"
        manager.decide("configureCloudRoutes", routes, because, cluster.at("networking.plugin"))
    elif cluster.has("cloudControllerManager"):
        because = "a cloud controller manager is configured"
        manager.decide("cloudProvider", "external", because, cluster.at("cloudControllerManager"))
    manager.decide("clusterCIDR", cluster.get("podCIDR"), "the pods' range", cluster.at("podCIDR"))
    manager.decide("clusterName", name, "the cluster's name", "metadata.name")
    manager.decide("clusterSigningCertFile", f"{OF_MANAGER}/ca.crt", FILE)
    manager.decide("clusterSigningKeyFile", f"{OF_MANAGER}/ca.key", FILE)
    controllers = ["*", "bootstrapsigner", "tokencleaner"]
    manager.decide("controllers", controllers, "all, and the two that bootstrap tokens need")
    manager.decide("logLevel", VERBOSITY, "enough to investigate an incident")
    if mask_field(manager.tree, inside.pods.version) == MASK:  # it does not start with both
        mask = max(24, min(inside.pods.prefixlen + 1, 28))
        manager.decide(MASK, mask, "the pod range of one node", cluster.at("podCIDR"))
    manager.decide("enableProfiling", False, "profiling exposes memory contents")
    manager.decide("requestheaderClientCAFile", f"{OF_MANAGER}/front-proxy-ca.crt", FILE)
    manager.decide("rootCAFile", f"{OF_MANAGER}/ca.crt", FILE)
    manager.decide("serviceAccountPrivateKeyFile", f"{OF_MANAGER}/service-account.key", FILE)
    services = cluster.at("serviceClusterIPRange")
    manager.decide("serviceClusterIPRange", cluster.get("serviceClusterIPRange"), "the cluster's", services)
    manager.decide("useServiceAccountCredentials", True, "each controller has only the permissions it needs")
    manager.decide("cpuRequest", "100m", "what it needs when idle")
    manager.under("leaderElection").decide("leaderElect", True, "one replica is active, the others stand by")


def complete_scheduler(cluster: Draft) -> None:
    scheduler = cluster.under("kubeScheduler")
    home = f"{OF_SCHEDULER}/kubeconfig"
    scheduler.decide("authenticationKubeconfig", home, FILE)
    scheduler.decide("authorizationKubeconfig", home, FILE)
    scheduler.decide("kubeconfig", home, FILE)
    scheduler.decide("bindAddress", "127.0.0.1", "only its own machine connects to it")
    scheduler.decide("clientCAFile", f"{OF_SCHEDULER}/ca.crt", FILE)
    scheduler.decide("requestheaderClientCAFile", f"{OF_SCHEDULER}/front-proxy-ca.crt", FILE)
    scheduler.decide("enableProfiling", False, "profiling exposes memory contents")
    scheduler.decide("logLevel", VERBOSITY, "enough to investigate an incident")
    scheduler.decide("cpuRequest", "100m", "what it needs when idle")
    scheduler.under("leaderElection").decide("leaderElect", True, "one replica is active, the others stand by")


def _if(draft: Draft, name: str) -> tuple[str, ...]:
    return (draft.at(name),) if draft.has(name) else ()
