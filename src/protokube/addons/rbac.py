"""RBAC rules in addition to the default ones of Kubernetes.

API servers create the default roles and the bindings of Kubernetes' own components, including kube-proxy. Not bound by
default are: new nodes, kubelets that renew certificates, the API server as a client of kubelets, and our
dns-controller.
"""

from __future__ import annotations

from protokube.addons.value import Addon, Tree

API = "rbac.authorization.k8s.io"
REQUESTS = "system:certificates.k8s.io:certificatesigningrequests"
NEW_NODES, NODES = "system:bootstrappers", "system:nodes"
READS_NODES = "protokube:reads-nodes"
DNS_CONTROLLER, DNS_USER = "protokube:dns-controller", "system:dns-controller"
SYSTEM = "kube-system"
DNS_LEASE, NAMES_LEASE = "protokube-dns-controller", "protokube-api-names"
"""The Lease for the leader election of the dns-controller, and the Lease by which agents claim the API's DNS names."""


def rbac(*, dns_controller: bool = True) -> Addon:
    return Addon(
        name="rbac",
        objects=(
            # without :nodeclient, by which Kubernetes would approve a request for any name; see `admit`
            _binding("protokube:new-nodes-ask", "system:node-bootstrapper", _group(NEW_NODES)),
            _binding("protokube:nodes-renew", f"{REQUESTS}:selfnodeclient", _group(NODES)),
            _binding("protokube:apiserver-asks-kubelets", "system:kubelet-api-admin", _user("kube-apiserver")),
            _reads_nodes(),
            _binding(READS_NODES, READS_NODES, _group(NODES)),
            *(dns_roles(_user(DNS_USER)) if dns_controller else ()),
        ),
    )


def dns_roles(who: Tree) -> tuple[Tree, ...]:
    """The dns-controller reads annotated objects, and writes only its own Lease and Events."""
    read = ["get", "list", "watch"]
    cluster = [
        {"apiGroups": [""], "resources": ["nodes", "pods", "services"], "verbs": read},
        {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": read},
        # the uid of kube-system identifies the cluster
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [SYSTEM], "verbs": ["get"]},
        # the addresses of the API servers, read before an address is removed from their DNS name
        {"apiGroups": [""], "resources": ["endpoints"], "resourceNames": ["kubernetes"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    own = [
        {**leases, "verbs": ["create"]},  # `create` cannot be restricted by resource name
        {**leases, "resourceNames": [DNS_LEASE], "verbs": ["get", "update"]},
        {**leases, "resourceNames": [NAMES_LEASE], "verbs": read},
    ]
    role = {"apiVersion": f"{API}/v1", "kind": "Role", "metadata": {"name": DNS_CONTROLLER, "namespace": SYSTEM}}
    return (
        {"apiVersion": f"{API}/v1", "kind": "ClusterRole", "metadata": {"name": DNS_CONTROLLER}, "rules": cluster},
        _binding(DNS_CONTROLLER, DNS_CONTROLLER, who),
        {**role, "rules": own},
        _binding(DNS_CONTROLLER, DNS_CONTROLLER, who, namespace=SYSTEM),
    )


def _reads_nodes() -> Tree:
    """The agent on a node needs routes to the pods of all nodes; since 1.32 a node may read only its own Node."""
    return {
        "apiVersion": f"{API}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": READS_NODES},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}],
    }


def _binding(name: str, role: str, subject: Tree, namespace: str = "") -> Tree:
    """A ClusterRoleBinding, or with a namespace a RoleBinding."""
    kind = "Role" if namespace else "ClusterRole"
    return {
        "apiVersion": f"{API}/v1",
        "kind": f"{kind}Binding",
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "roleRef": {"apiGroup": API, "kind": kind, "name": role},
        "subjects": [subject],
    }


def _group(name: str) -> Tree:
    return {"apiGroup": API, "kind": "Group", "name": name}


def _user(name: str) -> Tree:
    return {"apiGroup": API, "kind": "User", "name": name}
