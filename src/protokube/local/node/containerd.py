"""The container runtime of a host with a real kubelet: containerd's configuration, and the program of its unit.

The program enters the host's control groups, has the images brought in beside, and becomes containerd. What containerd
and its shims start is in the host's own PID namespace, and ends with the host.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from protokube.errors import ProtokubeError
from protokube.local.host import cgroups
from protokube.local.image.ctr import LOADED, NAMESPACE, ORDER, SOCKET, Ctr, import_archive
from protokube.local.loading import kept
from protokube.local.loading.contents import Wrong

__all__ = [
    "CTR",
    "LOADED",
    "NAMESPACE",
    "ORDER",
    "READY",
    "SOCKET",
    "Order",
    "config",
    "import_loaded",
    "import_missing",
    "main",
]

CONFIG = Path("/etc/containerd/config.toml")
READY = Path("/run/containerd/images-ready")
"""There once every image of the control plane is."""
NETWORKS = "/etc/cni/net.d"
DISABLED = ("aufs", "btrfs", "devmapper", "zfs")
"""Ways of keeping layers that no host of ours has; each would say so at every start."""
SECONDS_TO_START = 60.0
SECONDS_TO_LOAD = 600.0
"""For one archive, on a busy machine."""
CTR = Ctr()


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The same for every host of a cloud."""

    cgroup: str
    """The control group that holds the hosts'."""
    images: Mapping[str, str]
    """By name, the archive it comes from."""
    sandbox_image: str
    plugins: str
    """The folder of the programs that make pod networks."""
    kubelet: Sequence[str]
    """The kubelet's command; what only the host itself knows is added there."""
    loaded: str = ""
    """The folder of the images that a person loaded; see `loading.kept`."""

    def encode(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def read(path: Path = ORDER) -> Order:
        told: dict[str, Any] = json.loads(path.read_text())
        return Order(**told)


def config(sandbox_image: str, plugins: str) -> str:
    """containerd's file. JSON's texts and lists are also TOML's."""
    disabled = [f"io.containerd.snapshotter.v1.{each}" for each in DISABLED]
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = {json.dumps(disabled)}

[grpc]
address = {json.dumps(SOCKET)}

[{cri}]
sandbox_image = {json.dumps(sandbox_image)}
# this machine may not let us protect anybody from its own search for a victim
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
    order = Order.read()
    try:
        cgroups.enter(order.cgroup, socket.gethostname())
        for mark in (READY, LOADED):
            mark.unlink(missing_ok=True)
        CONFIG.parent.mkdir(parents=True, exist_ok=True)
        CONFIG.write_text(config(order.sandbox_image, order.plugins))
        Path(NETWORKS).mkdir(parents=True, exist_ok=True)
        if not os.fork():
            _bring_images(order)
        os.execvp("containerd", ["containerd", "--config", str(CONFIG)])  # noqa: S606, S607
    except (OSError, ProtokubeError) as why:
        sys.exit(f"containerd: {getattr(why, 'message', why)}")


def _bring_images(order: Order) -> None:
    """In a grandchild, which the host's first process adopts: containerd waits for no children but its own."""
    if os.fork():
        os._exit(0)
    try:
        import_missing(order.images)
        READY.touch()
        if order.loaded:
            import_loaded(Path(order.loaded))
        LOADED.touch()
        code = 0
    except (OSError, subprocess.SubprocessError) as why:
        _tell("images", why)
        code = 1
    os._exit(code)


def import_missing(images: Mapping[str, str]) -> list[str]:
    """Bring in what is not there; the names of those."""
    end = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            there = set(CTR("images", "list", "--quiet", seconds=SECONDS_TO_START).split())
            break
        except (OSError, subprocess.SubprocessError):
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    missing = sorted(set(images) - there)
    for image in missing:
        CTR("images", "import", images[image], seconds=SECONDS_TO_LOAD)
    return missing


def import_loaded(folder: Path) -> None:
    """Bring in what a person loaded, over what has the same name. What fails is told: it may not keep the host down.

    Also what is there by its name: it may have been replaced while this containerd did not run.
    """
    try:
        loaded = kept.read_index(folder)
    except (OSError, Wrong) as why:
        _tell("loaded images", why)
        return
    for each in loaded:
        try:
            import_archive(CTR, folder / each.file, each.names, SECONDS_TO_LOAD)
        except (OSError, subprocess.SubprocessError) as why:
            _tell(", ".join(each.names), why)


def _tell(what: str, why: Exception) -> None:
    sys.stderr.write(f"{what}: {why} {getattr(why, 'stderr', None) or ''}\n")


if __name__ == "__main__":
    main()
