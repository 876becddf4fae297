"""A machine that boots real systemd: Debian on an overlay of its own, started by systemd-nspawn.

What it writes stays when it reboots or is powered off, and goes with the test. /var/lib/containerd and /var/lib/kubelet
are on an ext4 of their own, since an overlay cannot lie on an overlay. Nothing of this repository is mounted; tests
copy what they need. Its clock, swap, kernel modules and sysctls outside `net` are those of the host.
"""

from __future__ import annotations

import os
import pty
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from clusters.machines import cgroups
from clusters.machines.base import debian_root
from clusters.machines.keeper import Keeper, children
from clusters.machines.tasks import Running, driven
from clusters.machines.waiting import wait_for
from e2e.systemd_machine import nspawn
from protokube.nodeup.values import Task

REPOSITORY = Path(__file__).resolve().parents[3]
REBOOT = 133
"""What systemd-nspawn ends with when the machine asked for a reboot."""
SETUP = """
mkdir -p {folder}/upper {folder}/work {folder}/root {folder}/disk
mount -t overlay overlay -o lowerdir={base},upperdir={folder}/upper,workdir={folder}/work {folder}/root
truncate -s {disk} {folder}/disk.img
mkfs.ext4 -q -F -E lazy_itable_init=1,lazy_journal_init=1 {folder}/disk.img
mount -o loop {folder}/disk.img {folder}/disk
mkdir {folder}/disk/containerd {folder}/disk/kubelet
"""
ON_DISK = ("containerd", "kubelet")
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
INSIDE = "/opt/tests"
LIBRARIES = ("jeepney", "protokube")


class SystemdMachine:
    """One machine; it boots when it is made."""

    def __init__(self, name: str = "machine", *, disk: str = "8G", boot: bool = True) -> None:
        self.name = name
        self.id = f"{name}-{secrets.token_hex(4)}"
        self.folder = Path(tempfile.mkdtemp(prefix="pk-machine-"))
        self._cgroups = cgroups.make(self.id)
        setup = SETUP.format(base=debian_root(), folder=self.folder, disk=disk)
        self.keeper = Keeper(setup, folder=self.folder, cgroups=self._cgroups)
        self.init: int | None = None
        """Its first process, as this process sees it; None while it is off."""
        self._nspawn: subprocess.Popen[bytes] | None = None
        self.console = self.folder / "console"
        """What its console showed."""
        (self.files / "etc/hostname").write_text(f"{name}\n")
        if boot:
            try:
                self.boot()
            except BaseException:
                self.close()
                raise

    @property
    def files(self) -> Path:
        """Its root, seen from here, also while it is off. What it mounts itself is not in there: see `inside`."""
        return self.keeper.files(self.folder / "root")

    @property
    def inside(self) -> Path:
        """Its root as its processes see it."""
        return Path(f"/proc/{self.init}/root")

    def boot(self) -> None:
        """Start it, and wait until systemd has started everything."""
        assert self.init is None, f"{self.name} runs already"
        self._start()
        self._up()

    def reboot(self) -> None:
        """Have it reboot by itself, and wait until it is up again."""
        self.run("systemctl", "reboot")
        self.rebooted()

    def rebooted(self) -> None:
        """Wait for a reboot that was asked for inside."""
        assert self._ended() == REBOOT, "it did not reboot"
        self._start()
        self._up()

    def power_off(self) -> None:
        self.run("systemctl", "poweroff")
        assert self._ended() == 0, "it did not power off"

    def pull_the_plug(self) -> None:
        """End all its processes at once."""
        assert self.init
        os.kill(self.init, 9)
        self._ended()

    def close(self) -> None:
        """Destroy it, with all that it wrote."""
        self.keeper.close()
        if self._nspawn:
            self._nspawn.wait(60)

    def enter(self, *command: str) -> list[str]:
        """The command line that runs a command inside, in its cgroups."""
        enter = ["nsenter", f"--target={self.init}", "--mount", "--pid", "--uts", "--ipc", "--net", "--root", "--wd"]
        moved = " ".join(map(str, self._cgroups))
        clean = ["env", "--ignore-environment", f"PATH={SEARCHED}", "LC_ALL=C", "HOME=/root"]
        return ["env", f"CGROUPS={moved}", "sh", "-ec", cgroups.ENTER, "sh", *enter, "--", *clean, *command]

    def ran(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command inside, to its end."""
        return subprocess.run(self.enter(*command), stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def run(self, *command: str) -> str:
        """What a command inside writes; it has to succeed."""
        ran = self.ran(*command)
        assert ran.returncode == 0, f"{' '.join(command)}: {ran.stdout}{ran.stderr}"
        return ran.stdout.strip()

    def show(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run("systemctl", "show", f"--property={name}", "--value", unit)

    def attach(self, device: Path, name: str) -> str:
        """Show it a block device of this machine under /dev; return its path inside."""
        status = device.stat()
        major, minor = os.major(status.st_rdev), os.minor(status.st_rdev)
        self.run("mknod", f"/dev/{name}", "b", str(major), str(minor))
        return f"/dev/{name}"

    def serve_ssh(self, public_key: str = "") -> None:
        """Make host keys, let root in with this key, and start sshd now and at each boot."""
        self.run("ssh-keygen", "-A")
        if public_key:
            self.run("install", "-d", "-m", "700", "/root/.ssh")
            (self.files / "root/.ssh/authorized_keys").write_text(public_key)
        self.run("systemctl", "enable", "--now", "ssh")

    def copy_protokube(self) -> None:
        """Copy protokube, what tasks need of its libraries, and the program that carries tasks out."""
        target = self.files / INSIDE.lstrip("/")
        target.mkdir(parents=True, exist_ok=True)
        for each in LIBRARIES:
            module = __import__(each)
            folder = Path(module.__path__[0])
            ignored = shutil.ignore_patterns("__pycache__", "tables")
            shutil.copytree(folder, target / each, dirs_exist_ok=True, ignore=ignored)
        shutil.copy(Path(__file__).with_name("driver.py"), target / "driver.py")

    def start(self, *tasks: Task, names: Sequence[str] = (), units: Sequence[str] = ()) -> Running:
        """Carry tasks out inside."""
        command = self.enter("env", f"PYTHONPATH={INSIDE}", "python3", f"{INSIDE}/driver.py")
        return driven(command, tasks, "/", names=list(names), units=list(units))

    def _start(self) -> None:
        binary, environment = nspawn()
        near, far = pty.openpty()  # systemd writes nothing without a terminal
        root = self.folder / "root"
        disks = [f"--bind={self.folder}/disk/{each}:/var/lib/{each}" for each in ON_DISK]
        command = [
            binary, "--quiet", "--register=no", "--keep-unit", "--link-journal=no", "--resolv-conf=off",
            "--timezone=off", f"--machine={self.id}", f"--hostname={self.name}", f"--directory={root}", *disks,
            "--network-namespace-path=/proc/1/ns/net", "--capability=all", "--boot",
        ]  # fmt: skip
        self._nspawn = subprocess.Popen(
            ["sh", "-ec", cgroups.ENTER, "sh", *self.keeper.enter(*command)],
            env=os.environ | environment | {"CGROUPS": " ".join(map(str, self._cgroups))},
            stdin=far,
            stdout=far,
            stderr=far,
            start_new_session=True,
        )
        os.close(far)
        threading.Thread(target=drain, args=(near, self.console), daemon=True).start()

    def _up(self) -> None:
        def while_it_runs(look: Callable[[], object]) -> Callable[[], object]:
            def looked() -> object:
                assert self._nspawn
                assert self._nspawn.poll() is None, f"systemd-nspawn ended: {self.console.read_text(errors='replace')}"
                return look()

            return looked

        def found() -> bool:
            self.init = self._find_init()
            return self.init is not None

        wait_for(while_it_runs(found), "the first process")
        bus = "run/dbus/system_bus_socket"
        wait_for(while_it_runs(lambda: (self.inside / bus).exists()), "the bus")
        wait_for(while_it_runs(self._has_booted), "the boot")
        for each in cgroups.trees():  # systemd-nspawn lets only systemd's own tree be written
            self.ran("mount", "-o", "remount,rw,bind", str(each))

    def _has_booted(self) -> bool:
        return self.ran("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")

    def _ended(self) -> int:
        assert self._nspawn
        code = self._nspawn.wait(60)
        self.init = None
        return code

    def _find_init(self) -> int | None:
        """The process below systemd-nspawn that is number 1 in a namespace below the keeper's."""
        assert self._nspawn
        family = [self._nspawn.pid]
        for pid in family:
            with suppress(OSError, StopIteration):  # it ended meanwhile
                status = Path(f"/proc/{pid}/status").read_text()
                numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
                if len(numbers) > 2 and numbers[-1] == "1":
                    return pid
                family += children(pid)
        return None


def drain(terminal: int, log: Path) -> None:
    """Read a terminal to its end: a full one stops who writes."""
    with log.open("ab") as file, os.fdopen(terminal, "rb", buffering=0) as screen, suppress(OSError):
        while data := screen.read(4096):
            file.write(data)
            file.flush()
