"""A volume as the original leaves it: etcd's data and a manifest, and nothing that says whose it is."""

from __future__ import annotations

from pathlib import Path

import yaml


def manifest_of_the_original(name: str = "etcd-a", *, scheme: str = "https", key: str = "main") -> str:
    """The parts that matter of the static pod that the original writes."""
    cluster = "etcd" if key == "main" else f"etcd-{key}"
    members = [f"{cluster}-{short}" for short in "abc"]
    peers = ",".join(f"{each}={scheme}://{each}.internal.dev.local:2380" for each in members)
    values = {
        "ETCD_NAME": name,
        "ETCD_DATA_DIR": "/var/etcd/data" if key == "main" else f"/var/etcd/data-{key}",
        "ETCD_INITIAL_ADVERTISE_PEER_URLS": f"{scheme}://{name}.internal.dev.local:2380",
        "ETCD_INITIAL_CLUSTER_STATE": "new",
        "ETCD_INITIAL_CLUSTER_TOKEN": f"etcd-cluster-token-{cluster}",
        "ETCD_INITIAL_CLUSTER": peers,
    }
    container = {
        "name": "etcd-container",
        "image": "k8s.gcr.io/etcd:3.4.13",
        "env": [{"name": name, "value": value} for name, value in values.items()],
        "command": ["/bin/sh", "-c", "mkfifo /tmp/pipe; exec /usr/local/bin/etcd > /tmp/pipe 2>&1"],
    }
    pod = {"metadata": {"name": "etcd-server"}, "spec": {"hostNetwork": True, "containers": [container]}}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **pod})


def lay_out(point: Path, *, key: str = "main", name: str = "etcd-a", manifest: bool = True) -> None:
    """Fill a folder, or a mounted volume, as the original does."""
    folder = point / ("var/etcd/data" if key == "main" else f"var/etcd/data-{key}")
    for each in ("wal", "snap"):
        (folder / "member" / each).mkdir(parents=True)
    (folder / "member/wal/0000000000000000-0000000000000000.wal").write_bytes(b"\x04" * 4096)
    (folder / "member/wal/0.tmp").write_bytes(b"")
    (folder / "member/snap/db").write_bytes(b"\0" * 20480)
    (point / "k8s.io/manifests").mkdir(parents=True)
    if manifest:
        file = point / "k8s.io/manifests" / ("etcd.manifest" if key == "main" else f"etcd-{key}.manifest")
        file.write_text(manifest_of_the_original(name, key=key))
