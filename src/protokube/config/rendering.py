"""Flags and files of every component of a complete configuration, ready to be written."""

from __future__ import annotations

from protokube.config import controlplane
from protokube.config.draft import Draft, Origin
from protokube.config.etcd_file import etcd_members
from protokube.config.flags import flag_table
from protokube.config.forms import flag_value
from protokube.config.render import Form, render
from protokube.spec.components.apiserver import KubeAPIServer
from protokube.spec.components.controller_manager import KubeControllerManager
from protokube.spec.components.kubelet import Kubelet
from protokube.spec.components.proxy import KubeProxy
from protokube.spec.components.scheduler import KubeScheduler
from protokube.spec.decode import Tree
from protokube.spec.parse import GROUPS
from protokube.spec.version import Version

KUBELET_FILE = f"{controlplane.CONFIG_DIRECTORY}/kubelet.yaml"
PROXY_FILE = f"{controlplane.CONFIG_DIRECTORY}/kube-proxy.yaml"
SCHEDULER_FILE = f"{controlplane.CONFIG_DIRECTORY}/kube-scheduler.yaml"
SECRETS = {controlplane.ENCRYPTION_FILE: "encryption"}
"""Files whose content is a secret of the store, named here and never shown."""
UNSECURED = "the port without TLS that this version still opens by itself is closed"


def render_all(cluster: Draft, root: Draft, version: Version) -> dict[str, Tree]:
    """Under "" what the control plane is given, under each group's name what its kubelets are given."""
    whole: dict[str, Tree] = {
        "": {
            "etcd": {key: etcd_members(cluster, key, etcd) for key, etcd in cluster.each("etcdClusters")},
            "kubeAPIServer": _apiserver(cluster, version),
            "kubeControllerManager": _controller_manager(cluster, version),
            "kubeScheduler": _scheduler(cluster, version),
        }
    }
    if (cluster.get("kubeProxy") or {}).get("enabled") is not False:
        whole[""]["kubeProxy"] = _proxy(cluster, version)
    for key, group in sorted(root.each(GROUPS)):
        if group.get("role") != "Bastion":
            whole[key] = {"kubelet": _kubelet(group, version)}
    return whole


def _point(form: Form, flag: str, path: str, draft: Draft, at: str) -> None:
    """The one flag that names the file."""
    form.flags = dict(sorted({**form.flags, flag: path}.items()))
    draft.ledger.origins[f"{at}.flags.{flag}"] = Origin("where its configuration file is written")


def _told(form: Form, files: Tree) -> Tree:
    return {"flags": form.flags, **({"files": files} if files else {})}


def _apiserver(cluster: Draft, version: Version) -> Tree:
    api = cluster.under("kubeAPIServer")
    table = flag_table("kube-apiserver", version.series)
    form = render(KubeAPIServer, api, table, version, has_file=False, at="kubeAPIServer")
    files: Tree = {}
    for document, pointer in (
        ("auditPolicy", "auditPolicyFile"),
        ("admissionConfiguration", "admissionControlConfigFile"),
        ("authenticationConfiguration", "authenticationConfigFile"),
    ):
        if api.has(document) and api.get(pointer):
            files[api.get(pointer)] = api.get(document)
            origin = Origin("written to a file of its own", (api.at(document),))
            api.ledger.origins |= {f"kubeAPIServer.file.{name}": origin for name in api.get(document)}
    secret = SECRETS.get(api.get("encryptionProviderConfig") or "")
    if secret:
        files[api.get("encryptionProviderConfig")] = {"fromSecret": secret}
        origin = Origin("the key lies in the store", (api.at("encryptionProviderConfig"),))
        api.ledger.origins["kubeAPIServer.file.fromSecret"] = origin
    if api.get("additionalServiceAccountIssuers") and "service-account-issuer" in form.flags:
        issuers = [form.flags["service-account-issuer"], *api.get("additionalServiceAccountIssuers")]
        form.flags["service-account-issuer"] = flag_value(issuers, repeat=True)
    return _told(form, files)


def _controller_manager(cluster: Draft, version: Version) -> Tree:
    draft, table = cluster.under("kubeControllerManager"), flag_table("kube-controller-manager", version.series)
    form = render(KubeControllerManager, draft, table, version, has_file=False, at="kubeControllerManager")
    if version < (1, 23) and "port" not in form.flags:
        form.flags = dict(sorted({**form.flags, "port": 0}.items()))
        draft.ledger.origins["kubeControllerManager.flags.port"] = Origin(UNSECURED)
    return _told(form, {})


def scheduler_api(version: Version) -> str:
    """The newest group version of the scheduler's file that this version reads."""
    for since, name in (((1, 25), "v1"), ((1, 23), "v1beta3"), ((1, 22), "v1beta2")):
        if version >= since:
            return f"kubescheduler.config.k8s.io/{name}"
    return "kubescheduler.config.k8s.io/v1beta1"


def _scheduler(cluster: Draft, version: Version) -> Tree:
    draft, table = cluster.under("kubeScheduler"), flag_table("kube-scheduler", version.series)
    form = render(KubeScheduler, draft, table, version, has_file=True, at="kubeScheduler")
    _point(form, "config", SCHEDULER_FILE, draft, "kubeScheduler")
    head = {"apiVersion": scheduler_api(version), "kind": "KubeSchedulerConfiguration"}
    if version < (1, 23):
        for name in ("healthzBindAddress", "metricsBindAddress"):
            form.file[name] = "127.0.0.1:0"
            draft.ledger.origins[f"kubeScheduler.file.{name}"] = Origin(UNSECURED)
    return _told(form, {SCHEDULER_FILE: head | form.file})


def _proxy(cluster: Draft, version: Version) -> Tree:
    draft, table = cluster.under("kubeProxy"), flag_table("kube-proxy", version.series)
    form = render(KubeProxy, draft, table, version, has_file=True, at="kubeProxy")
    _point(form, "config", PROXY_FILE, draft, "kubeProxy")
    head = {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration"}
    return _told(form, {PROXY_FILE: head | form.file})


def _kubelet(group: Draft, version: Version) -> Tree:
    draft, table = group.under("kubelet"), flag_table("kubelet", version.series)
    form = render(Kubelet, draft, table, version, has_file=True, at=draft.path)
    _point(form, "config", KUBELET_FILE, draft, draft.path)
    head = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    return _told(form, {KUBELET_FILE: head | form.file})
