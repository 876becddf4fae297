"""Translation rules for the fields of the original that our schema does not have under the same name.

A field in none of these tables is applied under its own name if our schema has it; a field in neither is unknown.
`docs/kops-fields.md` is generated from these tables.
"""

from __future__ import annotations

from typing import NamedTuple


class Rename(NamedTuple):
    """Applied under another name, in the same place."""

    to: str


class Move(NamedTuple):
    """Applied, but written differently in our schema; `kops.py` translates it."""

    to: str


class Ignore(NamedTuple):
    """Ignored with a warning: the cluster is the same without it. No warning if its value is `unless`."""

    why: str
    unless: str = ""


class Refuse(NamedTuple):
    """An error: without it the cluster would differ from what the document asks for."""

    why: str


Rule = Rename | Move | Ignore | Refuse

GONE = "not in Kubernetes 1.20 or later"
ADDON = "an add-on that runs inside the cluster; apply its manifest through `addons` or by hand"
OURS = "protokube's agent does this itself"

COMPONENTS: dict[str, dict[str, Rule]] = {
    "kubeAPIServer": {
        "address": Ignore(GONE),
        "admissionControl": Rename("enableAdmissionPlugins"),
        "auditDynamicConfiguration": Ignore(GONE),
        "authorizationRbacSuperUser": Refuse(f"{GONE}; bind the user to cluster-admin instead"),
        "basicAuthFile": Refuse(f"{GONE}; use client certificates or OIDC"),
        "disableBasicAuth": Ignore("Kubernetes has no basic authentication since 1.19"),
        "etcdQuorumRead": Ignore("reads are always quorum reads"),
        "experimentalEncryptionProviderConfig": Rename("encryptionProviderConfig"),
        "insecureBindAddress": Ignore("the unsecured port is gone; local components use certificates"),
        "insecurePort": Ignore("the unsecured port is gone; local components use certificates"),
        "targetRamMb": Ignore(GONE),
    },
    "kubeControllerManager": {
        "ClusterSigningDuration": Rename("clusterSigningDuration"),
        "concurrentHorizontalPodAustoscalerSyncs": Rename("concurrentHorizontalPodAutoscalerSyncs"),
        "experimentalClusterSigningDuration": Rename("clusterSigningDuration"),
        "horizontalPodAutoscalerDownscaleDelay": Ignore(f"{GONE}; see horizontalPodAutoscalerDownscaleStabilization"),
        "horizontalPodAutoscalerUpscaleDelay": Ignore(GONE),
        "horizontalPodAutoscalerUseRestClients": Ignore("always on since 1.16"),
        "master": Ignore("the API server's address is in its kubeconfig"),
    },
    "kubeScheduler": {
        "burst": Rename("kubeAPIBurst"),
        "master": Ignore("the API server's address is in its kubeconfig"),
        "maxPersistentVolumes": Refuse("it was an environment variable; set the limit in the CSI driver"),
        "qps": Rename("kubeAPIQPS"),
        "usePolicyConfigMap": Refuse("Kubernetes has no scheduler policies since 1.23; use kubeScheduler.profiles"),
    },
    "kubeProxy": {
        "master": Ignore("the API server's address is in its kubeconfig"),
    },
    "kubelet": {
        "allowPrivileged": Ignore("allowed by the API server since 1.15"),
        "apiServers": Ignore("the API server's address is in its kubeconfig"),
        "babysitDaemons": Ignore(GONE),
        "configureCbr0": Ignore(GONE),
        "dockerDisableSharedPID": Ignore(GONE),
        "enableCadvisorJsonEndpoints": Ignore("not in Kubernetes 1.21 or later"),
        "enableCustomMetrics": Ignore(GONE),
        "eventQPS": Rename("eventRecordQPS"),
        "experimentalAllowedUnsafeSysctls": Rename("allowedUnsafeSysctls"),
        "experimental_allowed_unsafe_sysctls": Rename("allowedUnsafeSysctls"),
        "nvidiaGPUs": Ignore("replaced by device plugins"),
        "reconcileCIDR": Ignore(GONE),
        "requireKubeconfig": Ignore("always on"),
    },
}

ETCD_CLUSTER: dict[str, Rule] = {
    "backups.image": Ignore(OURS),
    "enableEtcdTLS": Ignore("our etcd always speaks TLS", unless="true"),
    "enableTLSAuth": Ignore("our etcd always asks for certificates", unless="true"),
    "etcdMembers": Rename("members"),
    "manager": Move("backups, env, logLevel"),
    "manager.backupInterval": Move("backups.interval"),
    "manager.backupRetentionDays": Move("backups.retentionDays"),
    "manager.discoveryPollInterval": Ignore(OURS),
    "manager.env": Ignore("settings of etcd-manager, which we do not run"),
    "manager.image": Ignore(OURS),
    "manager.listenClientHTTPURLs": Ignore(OURS),
    "manager.listenMetricsURLs": Ignore("health and metrics are on 127.0.0.1; see metricsPort"),
    "manager.logLevel": Ignore(OURS),
    "provider": Ignore(OURS),
}

CLUSTER: dict[str, Rule] = {
    "DisableSubnetTags": Rename("disableSubnetTags"),
    "authentication": Ignore(
        f"{ADDON}, and set kubeAPIServer.authenticationTokenWebhookConfigFile; until then users authenticate only by"
        " certificates and tokens"
    ),
    "authorization": Move("authorization: RBAC or AlwaysAllow"),
    "awsLoadBalancerController": Ignore(ADDON),
    "certManager": Ignore(ADDON),
    "channel": Ignore("versions are set in the spec; there are no channels"),
    "cloudProvider": Rename("cloud"),
    "clusterAutoscaler": Ignore(ADDON),
    "configStore": Move("configBase, unless that is given too"),
    "dnsControllerGossipConfig": Ignore(
        "protokube has no gossip: without a DNS zone, masters compute the records themselves"
    ),
    "etcdClusters": Move("etcdClusters"),
    "externalDns": Move("dnsController"),
    "externalDns.priorityClassName": Ignore("the dns-controller runs as a static pod of the highest priority"),
    "externalDns.provider": Ignore("it is always protokube's dns-controller"),
    "gossipConfig": Ignore("protokube has no gossip: without a DNS zone, masters compute the records themselves"),
    "karpenter": Ignore(ADDON),
    "kubeDNS": Rename("clusterDNS"),
    "kubeDNS.coreDNSImage": Rename("image"),
    "kubeDNS.cpaImage": Ignore("the number of replicas is fixed; the DNS server has no autoscaler"),
    "metricsServer": Ignore(ADDON),
    "networking": Move("networking.plugin and networking.options"),
    "networking.classic": Refuse("not in Kubernetes since 1.4"),
    "networking.lyftvpc": Refuse("the plugin is no longer maintained"),
    "networking.romana": Refuse("the plugin is no longer maintained"),
    "nodeAuthorization": Ignore("nodes are admitted by bootstrap tokens and our approval rules"),
    "nodeProblemDetector": Ignore(ADDON),
    "nodeTerminationHandler": Ignore(ADDON),
    "podIdentityWebhook": Ignore(ADDON),
    "snapshotController": Ignore(ADDON),
    "target": Ignore("settings of Terraform output; protokube plans and applies changes itself"),
    "warmPool": Ignore("set warmPool on the instance groups that want one"),
}

GROUP: dict[str, Rule] = {
    "manager": Move("only CloudGroup is supported, which every group is"),
}

for _component, _rules in COMPONENTS.items():
    for _name, _rule in _rules.items():
        CLUSTER[f"{_component}.{_name}"] = _rule
        if _component == "kubelet":
            CLUSTER[f"masterKubelet.{_name}"] = _rule
            GROUP[f"kubelet.{_name}"] = _rule
for _name, _rule in ETCD_CLUSTER.items():
    CLUSTER[f"etcdClusters[].{_name}"] = _rule
