"""The root that every machine of a test starts from: Debian with systemd and what a bare server has, made once.

debootstrap makes it, under .cache, in a folder that is named after the list of its packages: another list is another
root. Nothing ever writes to it: machines and chroots are overlays on it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from host.debian import unpacked

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "machines"
SUITE = "bookworm"
PACKAGES = (
    "ca-certificates", "dbus", "e2fsprogs", "iproute2", "kmod", "mount", "openssh-server", "procps", "python3", "sudo",
    "systemd", "systemd-sysv", "udev",
)  # fmt: skip
IDENTITIES = ("etc/machine-id", "var/lib/dbus/machine-id")
"""Each machine gets its own at its first boot."""


def debian_root() -> Path:
    """The root; made at first use, which takes some minutes."""
    if os.geteuid() != 0:
        pytest.fail("machines of tests are made from a root file system, and only root can make one")
    key = hashlib.sha256(" ".join((SUITE, *PACKAGES)).encode()).hexdigest()[:12]
    root = CACHE / key / "root"
    if not root.exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        with locked(root.parent / "lock"):  # other workers wait for the first one
            if not root.exists():
                made = bootstrapped(root.with_name("root.new"))
                made.rename(root)
    return root


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def bootstrapped(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    tool, environment = shutil.which("debootstrap"), dict(os.environ)
    if tool is None:
        package = unpacked("debootstrap")
        tool = str(package / "usr/sbin/debootstrap")
        environment["DEBOOTSTRAP_DIR"] = str(package / "usr/share/debootstrap")
    command = [tool, "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(folder)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.fail(f"debootstrap failed: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    for name in IDENTITIES:
        (folder / name).unlink(missing_ok=True)
    (folder / "etc/machine-id").write_text("")
    (folder / "etc/hostname").write_text("debian\n")
    (folder / "etc/resolv.conf").unlink(missing_ok=True)
    for key in (folder / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    for archive in (folder / "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()
    return folder
