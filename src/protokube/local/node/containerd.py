"""The container runtime of a host with a real kubelet: containerd's configuration, and the program of its unit.

The program joins the host's cgroups, makes a root with the images that the cluster has prepared, imports others in the
background, and execs containerd. Everything that containerd and its shims start is in the host's PID namespace, and
ends with the host.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from protokube.errors import ProtokubeError
from protokube.images.contents import ImageProblem
from protokube.images.ctr import NAMESPACE, SOCKET, Ctr, import_archive
from protokube.local.base.paths import LOADED, RUNTIME_CONFIG
from protokube.local.host import cgroups
from protokube.local.loading import image_store
from protokube.local.node import prepared

__all__ = [
    "CTR",
    "LOADED",
    "NAMESPACE",
    "READY",
    "RUNTIME_CONFIG",
    "SOCKET",
    "RuntimeConfig",
    "config",
    "import_loaded",
    "import_missing",
    "main",
]

CONFIG = Path("/etc/containerd/config.toml")
READY = Path("/run/containerd/images-ready")
"""Exists once every image of the control plane is imported."""
NETWORKS = "/etc/cni/net.d"
DISABLED = tuple(f"io.containerd.snapshotter.v1.{name}" for name in ("aufs", "btrfs", "devmapper", "zfs"))
"""Snapshotters that no host supports; each would log an error at every start."""
SECONDS_TO_START = 60.0
SECONDS_TO_LOAD = 600.0
"""For one archive, on a busy machine."""
CTR = Ctr()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeConfig:
    """Configuration of the containerd and kubelet units; the same for every host of a cloud."""

    cgroup: str
    """The parent cgroup of the hosts."""
    images: Mapping[str, str]
    """Archives by image name."""
    sandbox_image: str
    plugins: str
    """The folder of the CNI plugins."""
    loaded: str = ""
    """The folder of the images that a user loaded; see `loading.image_store`."""
    prepared: str = ""
    """The root directory of containerd whose images new hosts share, if there is one; see `prepared`."""

    def encode(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def read(path: Path = RUNTIME_CONFIG) -> RuntimeConfig:
        document: dict[str, Any] = json.loads(path.read_text())
        document.pop("imported", None)  # by an older version: a root in the cache, which may be removed
        return RuntimeConfig(**document)


def config(sandbox_image: str, plugins: str) -> str:
    """containerd's configuration file. JSON strings and lists are valid TOML."""
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = {json.dumps(str(prepared.ROOT))}
state = "/run/containerd"
disabled_plugins = {json.dumps(DISABLED)}

[grpc]
address = {json.dumps(SOCKET)}

[{cri}]
sandbox_image = {json.dumps(sandbox_image)}
# the machine may not permit lower values of oom_score_adj
restrict_oom_score_adj = true

[{cri}.cni]
bin_dir = {json.dumps(plugins)}
conf_dir = {json.dumps(NETWORKS)}

[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{cri}.containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def main() -> None:
    """The program of containerd.service."""
    runtime_config = RuntimeConfig.read()
    try:
        cgroups.enter(runtime_config.cgroup, socket.gethostname())
        for mark in (READY, LOADED):
            mark.unlink(missing_ok=True)
        CONFIG.parent.mkdir(parents=True, exist_ok=True)
        CONFIG.write_text(config(runtime_config.sandbox_image, runtime_config.plugins))
        Path(NETWORKS).mkdir(parents=True, exist_ok=True)
        shared = Path(runtime_config.prepared) if runtime_config.prepared else None
        there = prepared.images(shared) if shared and prepared.give(shared) else frozenset[str]()
        if not os.fork():
            _import_images(runtime_config, there)
        os.execvp("containerd", ["containerd", "--config", str(CONFIG)])  # noqa: S606, S607
    except (OSError, ProtokubeError) as why:
        sys.exit(f"containerd: {getattr(why, 'message', why)}")


def _import_images(runtime_config: RuntimeConfig, there: Collection[str]) -> None:
    """Runs in a grandchild, which the host's init adopts: containerd would not reap a child that it did not start."""
    if os.fork():
        os._exit(0)
    try:
        if runtime_config.images.keys() <= set(there):
            await_socket(SECONDS_TO_START)
        else:
            import_missing(runtime_config.images)
        READY.touch()
        if runtime_config.loaded:
            import_loaded(Path(runtime_config.loaded))
        LOADED.touch()
        code = 0
    except (OSError, subprocess.SubprocessError) as why:
        _log_error("images", why)
        code = 1
    os._exit(code)


def await_socket(seconds: float) -> None:
    """Wait until containerd accepts connections. Raises OSError."""
    end = time.monotonic() + seconds
    while True:
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(SOCKET)
                return
            except OSError:
                if time.monotonic() > end:
                    raise
        time.sleep(0.02)


def import_missing(images: Mapping[str, str]) -> list[str]:
    """Import missing images; return their names."""
    missing = sorted(set(images) - CTR.await_start(SECONDS_TO_START))
    for image in missing:
        CTR("images", "import", images[image], seconds=SECONDS_TO_LOAD)
    return missing


def import_loaded(folder: Path) -> None:
    """Import images that a user loaded, replacing those of the same name. A failure is logged: the host must start.

    Existing names are imported, too: the image may have been replaced while this containerd did not run.
    """
    try:
        loaded = image_store.read_index(folder)
    except (OSError, ImageProblem) as why:
        _log_error("loaded images", why)
        return
    for each in loaded:
        try:
            import_archive(CTR, folder / each.file, each.names, SECONDS_TO_LOAD)
        except (OSError, subprocess.SubprocessError) as why:
            _log_error(", ".join(each.names), why)


def _log_error(what: str, why: Exception) -> None:
    sys.stderr.write(f"{what}: {why} {getattr(why, 'stderr', None) or ''}\n")


if __name__ == "__main__":
    main()
