"""Who may do what, beyond what Kubernetes says by itself.

Its own roles are there from the first start of an API server, and so are the bindings of its own components, kube-proxy
among them. What is not bound by anybody: new nodes, kubelets that renew, the API server that asks kubelets, and our own
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
"""By the one its replicas elect who writes; by the other the agents say that the names of the API are theirs."""


def rbac(*, dns_controller: bool = True) -> Addon:
    return Addon(
        name="rbac",
        objects=(
            _binding("protokube:new-nodes-ask", "system:node-bootstrapper", _group(NEW_NODES)),
            _binding("protokube:new-nodes-are-signed", f"{REQUESTS}:nodeclient", _group(NEW_NODES)),
            _binding("protokube:nodes-renew", f"{REQUESTS}:selfnodeclient", _group(NODES)),
            _binding("protokube:apiserver-asks-kubelets", "system:kubelet-api-admin", _user("kube-apiserver")),
            _reads_nodes(),
            _binding(READS_NODES, READS_NODES, _group(NODES)),
            *(dns_roles(_user(DNS_USER)) if dns_controller else ()),
        ),
    )


def dns_roles(who: Tree) -> tuple[Tree, ...]:
    """It reads what asks for names, and writes nothing but its own Lease and what it has to tell."""
    read = ["get", "list", "watch"]
    cluster = [
        {"apiGroups": [""], "resources": ["nodes", "pods", "services"], "verbs": read},
        {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": read},
        # its uid is that of the cluster
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [SYSTEM], "verbs": ["get"]},
        # where the API servers are, before an address leaves their name
        {"apiGroups": [""], "resources": ["endpoints"], "resourceNames": ["kubernetes"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    own = [
        {**leases, "verbs": ["create"]},  # what is not there yet has no name that one could ask for
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
    """Our agent on a node routes to the pods of all others; since 1.32 Kubernetes shows a node only itself."""
    return {
        "apiVersion": f"{API}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": READS_NODES},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}],
    }


def _binding(name: str, role: str, subject: Tree, namespace: str = "") -> Tree:
    """To a role of the whole cluster, or to one of a namespace."""
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
