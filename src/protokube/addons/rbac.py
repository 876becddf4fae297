"""Who may do what, beyond what Kubernetes says by itself.

Its own roles are there from the first start of an API server, and so are the bindings of its own components, kube-proxy
among them. What is not bound by anybody: new nodes, kubelets that renew, and the API server that asks kubelets.
"""

from __future__ import annotations

from protokube.addons.value import Addon, Tree

API = "rbac.authorization.k8s.io"
REQUESTS = "system:certificates.k8s.io:certificatesigningrequests"
NEW_NODES, NODES = "system:bootstrappers", "system:nodes"
READS_NODES = "protokube:reads-nodes"


def rbac() -> Addon:
    return Addon(
        name="rbac",
        objects=(
            _binding("protokube:new-nodes-ask", "system:node-bootstrapper", _group(NEW_NODES)),
            _binding("protokube:new-nodes-are-signed", f"{REQUESTS}:nodeclient", _group(NEW_NODES)),
            _binding("protokube:nodes-renew", f"{REQUESTS}:selfnodeclient", _group(NODES)),
            _binding("protokube:apiserver-asks-kubelets", "system:kubelet-api-admin", _user("kube-apiserver")),
            _reads_nodes(),
            _binding(READS_NODES, READS_NODES, _group(NODES)),
        ),
    )


def _reads_nodes() -> Tree:
    """Our agent on a node routes to the pods of all others; since 1.32 Kubernetes shows a node only itself."""
    return {
        "apiVersion": f"{API}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": READS_NODES},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}],
    }


def _binding(name: str, role: str, subject: Tree) -> Tree:
    return {
        "apiVersion": f"{API}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": API, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def _group(name: str) -> Tree:
    return {"apiGroup": API, "kind": "Group", "name": name}


def _user(name: str) -> Tree:
    return {"apiGroup": API, "kind": "User", "name": name}
