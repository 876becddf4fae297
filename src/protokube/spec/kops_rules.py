"""What becomes of each field of the original that is not simply ours by the same name.

A field that stands in none of these tables is carried out under its own name, because our schema has it; a field that
is in neither is unknown. `docs/kops-fields.md` is made from these tables.
"""

from __future__ import annotations

from typing import NamedTuple


class Rename(NamedTuple):
    """Carried out under another name, in the same place."""

    to: str


class Move(NamedTuple):
    """Carried out, but written differently by us; `kops.py` says how."""

    to: str


class Ignore(NamedTuple):
    """Passed over with a warning: the cluster is the same without it. `unless` it says what is so anyway."""

    why: str
    unless: str = ""


class Refuse(NamedTuple):
    """An error: without it this would be another cluster than asked for."""

    why: str


Rule = Rename | Move | Ignore | Refuse

GONE = "no Kubernetes from 1.20 on has it"
ADDON = "an add-on that runs inside the cluster; apply its manifest through `addons` or by hand"
OURS = "our agent does this part itself"

COMPONENTS: dict[str, dict[str, Rule]] = {
    "kubeAPIServer": {
        "address": Ignore(GONE),
        "admissionControl": Rename("enableAdmissionPlugins"),
        "auditDynamicConfiguration": Ignore(GONE),
        "authorizationRbacSuperUser": Refuse(f"{GONE}; bind the user to cluster-admin instead"),
        "basicAuthFile": Refuse(f"{GONE}; use client certificates or OIDC"),
        "disableBasicAuth": Ignore("basic authentication is gone since 1.19"),
        "etcdQuorumRead": Ignore("reads are always by quorum"),
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
        "horizontalPodAutoscalerUseRestClients": Ignore("the only way since 1.16"),
        "master": Ignore("ours finds the API by its kubeconfig"),
    },
    "kubeScheduler": {
        "burst": Rename("kubeAPIBurst"),
        "master": Ignore("ours finds the API by its kubeconfig"),
        "maxPersistentVolumes": Refuse("it was an environment variable; set the limit in the CSI driver"),
        "qps": Rename("kubeAPIQPS"),
        "usePolicyConfigMap": Refuse("scheduler policies are gone since 1.23; use kubeScheduler.profiles"),
    },
    "kubeProxy": {
        "master": Ignore("ours finds the API by its kubeconfig"),
    },
    "kubelet": {
        "allowPrivileged": Ignore("allowed by the API server since 1.15"),
        "apiServers": Ignore("ours finds the API by its kubeconfig"),
        "babysitDaemons": Ignore(GONE),
        "configureCbr0": Ignore(GONE),
        "dockerDisableSharedPID": Ignore(GONE),
        "enableCadvisorJsonEndpoints": Ignore("gone since 1.21"),
        "enableCustomMetrics": Ignore(GONE),
        "eventQPS": Rename("eventRecordQPS"),
        "experimentalAllowedUnsafeSysctls": Rename("allowedUnsafeSysctls"),
        "experimental_allowed_unsafe_sysctls": Rename("allowedUnsafeSysctls"),
        "nvidiaGPUs": Ignore("replaced by device plugins"),
        "reconcileCIDR": Ignore(GONE),
        "requireKubeconfig": Ignore("always so"),
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
        f"{ADDON}, and set kubeAPIServer.authenticationTokenWebhookConfigFile; until then only"
        " certificates and tokens let people in"
    ),
    "authorization": Move("authorization: RBAC or AlwaysAllow"),
    "awsLoadBalancerController": Ignore(ADDON),
    "certManager": Ignore(ADDON),
    "channel": Ignore("versions are named in the spec; there is no channel to follow"),
    "cloudProvider": Rename("cloud"),
    "clusterAutoscaler": Ignore(ADDON),
    "configStore": Move("configBase, where that is not given too"),
    "dnsControllerGossipConfig": Ignore("no gossip here: without a zone, masters compute the records themselves"),
    "etcdClusters": Move("etcdClusters"),
    "externalDns": Move("dnsController"),
    "externalDns.priorityClassName": Ignore("ours runs as a static pod of the highest priority"),
    "externalDns.provider": Ignore("ours is always protokube's dns-controller"),
    "gossipConfig": Ignore("no gossip here: without a zone, masters compute the records themselves"),
    "karpenter": Ignore(ADDON),
    "kubeDNS": Rename("clusterDNS"),
    "kubeDNS.coreDNSImage": Rename("image"),
    "kubeDNS.cpaImage": Ignore("replicas are fixed; there is no autoscaler beside the DNS server"),
    "metricsServer": Ignore(ADDON),
    "networking": Move("networking.plugin and networking.options"),
    "networking.classic": Refuse("gone from Kubernetes since 1.4"),
    "networking.lyftvpc": Refuse("the plugin is no longer maintained"),
    "networking.romana": Refuse("the plugin is no longer maintained"),
    "nodeAuthorization": Ignore("nodes are admitted by bootstrap tokens and our approval rules"),
    "nodeProblemDetector": Ignore(ADDON),
    "nodeTerminationHandler": Ignore(ADDON),
    "podIdentityWebhook": Ignore(ADDON),
    "snapshotController": Ignore(ADDON),
    "target": Ignore("how the original writes Terraform; ours plans and applies itself"),
    "warmPool": Ignore("set warmPool on the instance groups that want one"),
}

GROUP: dict[str, Rule] = {
    "manager": Move("only CloudGroup, which is what ours are"),
}

for _component, _rules in COMPONENTS.items():
    for _name, _rule in _rules.items():
        CLUSTER[f"{_component}.{_name}"] = _rule
        if _component == "kubelet":
            CLUSTER[f"masterKubelet.{_name}"] = _rule
            GROUP[f"kubelet.{_name}"] = _rule
for _name, _rule in ETCD_CLUSTER.items():
    CLUSTER[f"etcdClusters[].{_name}"] = _rule
