"""Flags and files of every component of a complete configuration, ready to be written."""

from __future__ import annotations

from protokube.config import controlplane
from protokube.config.draft import Draft, Origin
from protokube.config.flags import COMPONENTS, flag_table
from protokube.config.places import DIRECTORY, own_folder
from protokube.config.render.etcd_file import etcd_members
from protokube.config.render.forms import flag_value
from protokube.config.render.settings import Form, render
from protokube.spec.components.apiserver import KubeAPIServer
from protokube.spec.components.controller_manager import KubeControllerManager
from protokube.spec.components.kubelet import Kubelet
from protokube.spec.components.proxy import KubeProxy
from protokube.spec.components.scheduler import KubeScheduler
from protokube.spec.decode import Tree
from protokube.spec.parse import GROUPS
from protokube.spec.version import Version

KUBELET_FILE = f"{controlplane.CONFIG_DIRECTORY}/kubelet.yaml"
PROXY_FILE = f"{own_folder('kube-proxy')}/config.yaml"
SCHEDULER_FILE = f"{controlplane.OF_SCHEDULER}/config.yaml"
SECRETS = dict.fromkeys((controlplane.ENCRYPTION_FILE, f"{DIRECTORY}/encryption.yaml"), "encryption")
"""Files whose content is a secret of the state store and is never shown; earlier releases used the second path."""
UNSECURED = "closes the port without TLS that this version opens by default"
SCHEDULER_ON_LOOPBACK = "127.0.0.1:10251"
ON_LOOPBACK = "the port without TLS that this version needs, for its own machine only"


def render_all(cluster: Draft, root: Draft, version: Version) -> dict[str, Tree]:
    """Flags and files of the control plane under "", and of a group's kubelets under the group's name."""
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


def _formed(schema: type, field: str, holder: Draft, version: Version, file: str = "") -> tuple[Form, Draft]:
    """The form of one component, and its settings; with a configuration file, also the flag that names the file."""
    draft, table = holder.under(field), flag_table(COMPONENTS[field], version.series)
    form = render(schema, draft, table, version, has_file=bool(file))
    if file:
        _add_flag(form, draft, "config", file, "where its configuration file is written")
    return form, draft


def _add_flag(form: Form, draft: Draft, flag: str, value: object, because: str) -> None:
    """Add a flag that has no setting."""
    form.flags = dict(sorted({**form.flags, flag: value}.items()))
    draft.ledger.origins[f"{draft.path}.flags.{flag}"] = Origin(because)


def _tree(form: Form, files: Tree) -> Tree:
    return {"flags": form.flags, **({"files": files} if files else {})}


def _apiserver(cluster: Draft, version: Version) -> Tree:
    form, api = _formed(KubeAPIServer, "kubeAPIServer", cluster, version)
    if api.get("authorizationMode") == "":  # a user's file sets it, and even an empty flag is refused
        form.flags.pop("authorization-mode", None)
        api.ledger.origins.pop(f"{api.path}.flags.authorization-mode", None)
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
        origin = Origin("the key is in the state store", (api.at("encryptionProviderConfig"),))
        api.ledger.origins["kubeAPIServer.file.fromSecret"] = origin
    if api.get("additionalServiceAccountIssuers") and "service-account-issuer" in form.flags:
        issuers = [form.flags["service-account-issuer"], *api.get("additionalServiceAccountIssuers")]
        form.flags["service-account-issuer"] = flag_value(issuers, repeat=True)
    return _tree(form, files)


def _controller_manager(cluster: Draft, version: Version) -> Tree:
    form, draft = _formed(KubeControllerManager, "kubeControllerManager", cluster, version)
    if version < (1, 23) and "port" not in form.flags:
        _add_flag(form, draft, "port", 0, UNSECURED)
    return _tree(form, {})


def scheduler_api(version: Version) -> str:
    """The newest API version of the scheduler's configuration file that this version reads."""
    for since, name in (((1, 25), "v1"), ((1, 23), "v1beta3"), ((1, 22), "v1beta2")):
        if version >= since:
            return f"kubescheduler.config.k8s.io/{name}"
    return "kubescheduler.config.k8s.io/v1beta1"


def _scheduler(cluster: Draft, version: Version) -> Tree:
    form, draft = _formed(KubeScheduler, "kubeScheduler", cluster, version, SCHEDULER_FILE)
    head = {"apiVersion": scheduler_api(version), "kind": "KubeSchedulerConfiguration"}
    if version < (1, 23):
        for name in ("healthzBindAddress", "metricsBindAddress"):
            form.file[name] = SCHEDULER_ON_LOOPBACK
            draft.ledger.origins[f"kubeScheduler.file.{name}"] = Origin(ON_LOOPBACK)
    return _tree(form, {SCHEDULER_FILE: head | form.file})


def _proxy(cluster: Draft, version: Version) -> Tree:
    form, _ = _formed(KubeProxy, "kubeProxy", cluster, version, PROXY_FILE)
    head = {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration"}
    return _tree(form, {PROXY_FILE: head | form.file})


def _kubelet(group: Draft, version: Version) -> Tree:
    form, _ = _formed(Kubelet, "kubelet", group, version, KUBELET_FILE)
    head = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    return _tree(form, {KUBELET_FILE: head | form.file})
