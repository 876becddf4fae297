"""Files for the user's `etcdctl`: a client certificate and an environment to source; and the address of the API."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from protokube.etcd.tls import TlsFiles
from protokube.host.files import write_atomic
from protokube.local.base.paths import Paths

if TYPE_CHECKING:
    from protokube.kube.client import KubeApi


def folder(paths: Paths) -> Path:
    return paths.client


def environment(paths: Paths, endpoints: Mapping[str, str]) -> dict[str, str]:
    """Environment variables of etcdctl; endpoints are on loopback, ordered by member."""
    where = folder(paths)
    return {
        "ETCDCTL_ENDPOINTS": ",".join(endpoints[name] for name in sorted(endpoints)),
        "ETCDCTL_CACERT": str(where / "ca.crt"),
        "ETCDCTL_CERT": str(where / "client.crt"),
        "ETCDCTL_KEY": str(where / "client.key"),
    }


def etcd_tls(paths: Paths) -> TlsFiles:
    """The operator's own certificate for etcd, which `up` writes."""
    where = folder(paths)
    return TlsFiles(ca=where / "ca.crt", cert=where / "client.crt", key=where / "client.key")


def write_environment(paths: Paths, variables: Mapping[str, str]) -> Path:
    file = folder(paths) / "env"
    text = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    write_atomic(file, text.encode(), 0o600)
    return file


def api_server(paths: Paths) -> str:
    """The API server's address on the user's loopback, as written by `up`; empty if there is none."""
    try:
        return (folder(paths) / "api-server").read_text().strip()
    except FileNotFoundError:
        return ""


def kube_api(paths: Paths, patience: float) -> KubeApi | None:
    """A Kubernetes client with the credentials of the user who ran `up`; None without Kubernetes."""
    server, where = api_server(paths), folder(paths)
    if not server:
        return None
    from protokube.kube.client import KubeApi

    ca, certificate, key = (where / name for name in ("kubernetes-ca.crt", "kubernetes.crt", "kubernetes.key"))
    return KubeApi(server, ca=ca, certificate=certificate, key=key, patience=patience)
