"""kubeconfig files: the API server and the credentials of a client."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from protokube.manifests.text import as_yaml


def by_files(cluster: str, server: str, user: str, *, ca: str, certificate: str, key: str) -> str:
    """For a component: it names files, so that renewed certificates are picked up."""
    files = {"client-certificate": certificate, "client-key": key}
    return _kubeconfig(cluster, {"server": server, "certificate-authority": ca}, user, files)


def by_content(cluster: str, server: str, user: str, *, ca: bytes, certificate: bytes, key: bytes) -> str:
    """For a person: one file with everything in it."""
    content = {"client-certificate-data": _encoded(certificate), "client-key-data": _encoded(key)}
    return _kubeconfig(cluster, {"server": server, "certificate-authority-data": _encoded(ca)}, user, content)


def by_token(cluster: str, server: str, user: str, *, ca: str, token: str) -> str:
    """For a new node: to request its first certificate."""
    return _kubeconfig(cluster, {"server": server, "certificate-authority": ca}, user, {"token": token})


def _encoded(data: bytes) -> str:
    return b64encode(data).decode()


def _kubeconfig(cluster: str, where: dict[str, str], user: str, who: dict[str, str]) -> str:
    tree: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": where}],
        "users": [{"name": user, "user": who}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
        "current-context": cluster,
    }
    return as_yaml(tree)
