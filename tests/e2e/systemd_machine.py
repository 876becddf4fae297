"""A machine that boots real systemd: Debian in a folder, started by systemd-nspawn, nothing of it installed here.

The root is made once, by debootstrap, under .cache; what a machine writes goes with it.
"""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from host.debian import unpacked

REPOSITORY = Path(__file__).resolve().parents[2]
ROOT = REPOSITORY / ".cache" / "systemd-machine" / "root"
SUITE, PACKAGES = "bookworm", "systemd,systemd-sysv,dbus,python3"
BOOT_SECONDS = 60
ENTER = 'for each in $CGROUPS; do echo $$ > "$each/cgroup.procs"; done; exec "$@"'
"""Move into some cgroups, then become the command."""
T = TypeVar("T")


def debian_root() -> Path:
    """Debian with systemd, a message bus and Python; downloaded once, which takes some minutes."""
    if not ROOT.exists():
        half_made = ROOT.with_name("root.new")
        shutil.rmtree(half_made, ignore_errors=True)
        half_made.parent.mkdir(parents=True, exist_ok=True)
        tool = shutil.which("debootstrap")
        environment = dict(os.environ)
        if tool is None:
            tool = str(unpacked("debootstrap") / "usr/sbin/debootstrap")
            environment["DEBOOTSTRAP_DIR"] = str(unpacked("debootstrap") / "usr/share/debootstrap")
        command = [tool, "--variant=minbase", f"--include={PACKAGES}", SUITE, str(half_made)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode:
            pytest.fail(f"debootstrap failed: {ran.stdout[-2000:]}")
        (half_made / "etc/machine-id").write_text("")  # each machine gets its own at its first boot
        half_made.rename(ROOT)
    return ROOT


def nspawn() -> tuple[str, dict[str, str]]:
    if found := shutil.which("systemd-nspawn"):
        return found, {}
    needed = {"libsystemd-shared": "libsystemd-shared-*.so", "libip4tc2": "libip4tc.so.2", "libkmod2": "libkmod.so.2"}
    folders = [str(next(unpacked(package).rglob(library)).parent) for package, library in needed.items()]
    return str(unpacked("systemd-container") / "usr/bin/systemd-nspawn"), {"LD_LIBRARY_PATH": ":".join(folders)}


def cgroups(name: str) -> list[Path]:
    """A cgroup of that name in each tree that systemd uses; systemd-nspawn makes its own below, and leaves them."""
    trees = [Path("/sys/fs/cgroup", each) for each in ("unified", "systemd", "")]
    return [tree / name for tree in trees if (tree / "cgroup.procs").exists()]


class SystemdMachine:
    """One boot of it. The sources of this repository are at /opt/protokube."""

    def __init__(self, name: str) -> None:
        self._cgroups = cgroups(name)
        for each in self._cgroups:
            each.mkdir()
        binary, environment = nspawn()
        console, self._far = pty.openpty()  # systemd writes nothing without a terminal
        self._console = console
        command = [
            binary,
            "--quiet",
            "--register=no",
            "--keep-unit",
            "--link-journal=no",  # a machine that has no systemd has no id either, which that would ask for
            f"--machine={name}",
            f"--directory={debian_root()}",
        ]
        command += [
            "--volatile=overlay",
            "--private-network",
            f"--bind-ro={REPOSITORY / 'src'}:/opt/protokube",
            "--boot",
        ]
        self._process = subprocess.Popen(
            ["sh", "-ec", ENTER, "sh", *command],
            env=os.environ | environment | {"CGROUPS": " ".join(map(str, self._cgroups))},
            stdin=self._far,
            stdout=self._far,
            stderr=self._far,
            start_new_session=True,
        )
        try:
            self.init = wait_for(self._find_init, "the first process")
            wait_for(lambda: (self.inside / "run/dbus/system_bus_socket").exists(), "the bus")
            wait_for(lambda: self.run("systemctl", "is-system-running") in ("running", "degraded"), "the boot")
        except BaseException:
            self.close()
            raise

    @property
    def inside(self) -> Path:
        """Its files, seen from here."""
        return Path(f"/proc/{self.init}/root")

    @property
    def bus(self) -> str:
        return f"unix:path={self.inside}/run/dbus/system_bus_socket"

    def run(self, *command: str) -> str:
        """What a command in it says, whether or not it succeeds."""
        enter = ["nsenter", f"--target={self.init}", "--mount", "--pid", "--uts", "--ipc", "--net", "--root", "--wd"]
        ran = subprocess.run([*enter, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return ran.stdout.strip()

    def write_unit(self, name: str, *service: str) -> None:
        (self.inside / "etc/systemd/system" / name).write_text("[Service]\n" + "\n".join(service) + "\n")

    def state(self, unit: str) -> str:
        return self.run("systemctl", "show", "--property=ActiveState", "--value", unit)

    def close(self) -> None:
        """Power it off, or pull the plug."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._console)
        os.close(self._far)
        for each in self._cgroups:
            for folder, _, _ in os.walk(each, topdown=False):
                Path(folder).rmdir()

    def _find_init(self) -> int | None:
        """The process below nspawn that is number 1 in a namespace of its own."""
        assert self._process.poll() is None, "systemd-nspawn ended"
        family, found = [self._process.pid], None
        while family and found is None:
            pid = family.pop()
            try:
                status = Path(f"/proc/{pid}/status").read_text()
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            except OSError:  # it ended meanwhile
                continue
            numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
            found = pid if len(numbers) > 1 and numbers[-1] == "1" else None
            family += map(int, children.split())
        return found


def wait_for(look: Callable[[], T | None], what: str) -> T:
    """What it sees, once it sees anything."""
    deadline = time.monotonic() + BOOT_SECONDS
    while not (seen := look()):
        assert time.monotonic() < deadline, f"{what} did not come within {BOOT_SECONDS} s"
        time.sleep(0.05)
    return seen
