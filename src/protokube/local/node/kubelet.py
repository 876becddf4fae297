"""The real kubelet in a host of the local cloud: its extra settings, and the program of its unit.

The host shares kernel and disk with the user's machine: a kubelet that sets kernel parameters, or garbage-collects
images on a full disk, would affect the user. So it finds the parameters as it wants them, and no disk pressure.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct
import sys
import time
from pathlib import Path
from typing import Any

from protokube.errors import ProtokubeError
from protokube.launch.files import KUBELET_ENV, flags_in, version_in
from protokube.local.base import programs, syscalls
from protokube.local.host import cgroups
from protokube.local.host.network import CABLE
from protokube.local.node.containerd import LOADED, READY, RuntimeConfig

PROGRAM = programs.KUBELET
TUNABLES = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""Kernel parameters that a kubelet sets if they differ."""
FOLDER = Path("/run/protokube/tunables")
KERNEL_LOG = (1, 11)
SIOCGIFADDR = 0x8915
SECONDS_FOR_IMAGES = 120.0
SECONDS_FOR_LOADED = 30.0
"""Short: the control plane matters more than images of a user's pods, whose import is retried."""


def settings(tree: dict[str, Any]) -> dict[str, Any]:
    """Its configuration file, with the settings that a local host needs; an adapter for `launch.derive`."""
    full = {"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%"}
    return {
        **tree,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": "/",
        "failSwapOn": False,
        "resolvConf": "/etc/resolv.conf",
        "evictionHard": {**(tree.get("evictionHard") or {}), **full},
        "imageGCHighThresholdPercent": 100,
        "protectKernelDefaults": False,
    }


def main() -> None:
    """The program of kubelet.service."""
    config = RuntimeConfig.read()
    try:
        cgroups.enter(config.cgroup, socket.gethostname())
        shield_kernel()
        _make_kernel_log()
        await_images()
        environment = Path(KUBELET_ENV).read_text()
        os.execvp(program(environment), command(environment, address()))  # noqa: S606
    except (OSError, ProtokubeError) as why:
        sys.exit(f"kubelet: {getattr(why, 'message', why)}")


def program(environment: str) -> str:
    """The kubelet of the version in the environment file; the one in PATH if that names none, or is the only one."""
    folder, version = os.environ.get(programs.VARIABLE), version_in(environment)
    kept = programs.find_only(Path(folder), f"{PROGRAM}:{version}", PROGRAM) if folder and version else None
    return str(kept or PROGRAM)


def command(environment: str, address: str) -> list[str]:
    """The kubelet's command: its flags in the environment file, and those that only the host itself knows."""
    return [PROGRAM, *flags_in(environment), f"--node-ip={address}"]


def address() -> str:
    """The IPv4 address of the host's network interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("256s", CABLE.encode()))
    return socket.inet_ntoa(answer[20:24])


def shield_kernel() -> None:
    """Bind-mount files of the host over kernel parameters, so that the kubelet reads and writes those."""
    for name, value in TUNABLES.items():
        place, own = Path("/proc/sys") / name, FOLDER / name
        if own.exists() or not place.exists():
            continue
        own.parent.mkdir(parents=True, exist_ok=True)
        draft = own.with_name(f".{own.name}")
        draft.write_text(f"{value}\n")
        syscalls.bind(str(draft), str(place))
        draft.replace(own)


def _make_kernel_log() -> None:
    """Create /dev/kmsg: the kubelet reads OOM kills there, and does not start without it."""
    place = Path("/dev/kmsg")
    if not place.exists():
        os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(*KERNEL_LOG))


def await_images() -> None:
    """Wait for imports: the kubelet would try to pull a missing image, fail, and back off for long."""
    end = time.monotonic() + SECONDS_FOR_IMAGES
    while not READY.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"no images after {SECONDS_FOR_IMAGES:g} s; see containerd.service.log")
        time.sleep(0.1)
    end = time.monotonic() + SECONDS_FOR_LOADED
    while not LOADED.exists() and time.monotonic() < end:
        time.sleep(0.1)


if __name__ == "__main__":
    main()
