"""Read the facts of a machine, or of the root of an image: nothing is changed, and no answer is waited for long.

What is hard is that the same folder may be looked at from another machine: with a root other than `/` nothing of the
kernel, of the services or of the clock that run here says anything about it. Its processor is ours: its programs run
here, in a chroot.
"""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from protokube.errors import Refused
from protokube.host.files import read_or_none
from protokube.host.systemd import ROOT, SYSTEMD
from protokube.nodeup.distribution import APT, ASKED, DNF
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.packages import status

NEEDED = ("containerd", "containernetworking-plugins")
"""Where these are installed, nothing depends on the lists of packages."""
RECORD = "etc/protokube/machine.json"
"""Which cluster this machine belongs to, written by an earlier run."""
WANTS = "etc/systemd/system/*.wants/"
NO_CACHE = ("-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=")
"""apt-cache would write what it has read to /var/cache/apt, also while a plan is made."""
OS_RELEASE = ("etc/os-release", "usr/lib/os-release")
MANAGERS = {"usr/bin/apt-get": PackageManager.APT, "usr/bin/dnf": PackageManager.DNF, "bin/apt-get": PackageManager.APT}
SYNCHRONIZED = "run/systemd/timesync/synchronized"
BUS_SECONDS = 2.0
QUERY_SECONDS = 30.0


def read_facts(root: Path = Path("/"), *, bus: str = "SYSTEM", names: Sequence[str] = ASKED) -> Facts:
    """The facts of this machine, or of the root of an image. Refused if it is no system that we know how to read."""
    release = os_release(root)
    live = root == Path("/")
    manager = package_manager(root)
    record = membership(root)
    return Facts(
        distribution=release.get("ID", ""),
        distribution_version=release.get("VERSION_ID", ""),
        like=tuple(release.get("ID_LIKE", "").split()),
        processor=platform.machine(),
        package_manager=manager,
        available=available(root, manager, names),
        cgroup2=is_cgroup2(root) if live else True,
        systemd=systemd_version(bus) if live else 0,
        memory=memory(root) if live else 0,
        swap=live and swap(root),
        host_name=socket.gethostname() if live else (text(root / "etc/hostname") or "").strip(),
        clock_error=clock_error(root, bus) if live else None,
        container=live and is_container(root),
        image=not live,
        time_service=time_service(root, manager, bus),
        cluster=record.get("cluster", ""),
        node_name=record.get("nodeName", ""),
    )


def time_service(root: Path, manager: PackageManager, bus: str) -> str:
    """The unit that keeps the clock: active here, or enabled in an image."""
    units = tuple((DNF if manager is PackageManager.DNF else APT).time_units.values())
    if root == Path("/"):
        return active_unit(bus, units)
    return next((name for name in units if any((wants / name).is_symlink() for wants in root.glob(WANTS))), "")


def membership(root: Path) -> Mapping[str, str]:
    """The record of an earlier run; nothing of one that cannot be read, which the next run writes again."""
    try:
        record = json.loads(text(root / RECORD) or "{}")
    except ValueError:
        return {}
    return {key: value for key, value in record.items() if isinstance(value, str)} if isinstance(record, dict) else {}


def text(path: Path) -> str | None:
    """A small file; None if there is none, or it cannot be read."""
    try:
        content = read_or_none(path)
    except OSError:
        return None
    return None if content is None else content.decode(errors="replace")


def os_release(root: Path) -> Mapping[str, str]:
    for name in OS_RELEASE:
        # In an image etc/os-release is a link to ../usr/lib, or to /usr/lib, which would be ours.
        path = root / name
        if not (path.is_symlink() and path.readlink().is_absolute() and root != Path("/")) and (found := text(path)):
            return parse_release(found)
    raise Refused(
        f"{root} is no root of a system: it has no os-release",
        want="/etc/os-release or /usr/lib/os-release, as every distribution has",
    )


def parse_release(content: str) -> Mapping[str, str]:
    """os-release(5): assignments of a shell, with quotes and without anything else."""
    found: dict[str, str] = {}
    for line in content.splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and re.fullmatch(r"[A-Z0-9_]+", name):
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            found[name] = re.sub(r"\\([\"'\\$`])", r"\1", value[1:-1]) if quoted else value
    return found


def package_manager(root: Path) -> PackageManager:
    return next((kind for path, kind in MANAGERS.items() if (root / path).exists()), PackageManager.NONE)


def available(root: Path, manager: PackageManager, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Versions that are installed or would be; packages that nobody knows are left out.

    Installed ones come from dpkg's database, so a machine where all are runs no program for it.
    """
    if manager is not PackageManager.APT:
        return rpm_available(root, names) if manager is PackageManager.DNF else ()
    texts = [text(root / "var/lib/dpkg/status") or ""]
    packages = status.read(texts, platform.machine())
    found = {name: packages[name].version for name in names if name in packages and packages[name].state == "installed"}
    if missing := [name for name in names if name not in found]:
        found |= parse_policy(output(root, "apt-cache", *NO_CACHE, "policy", *missing))
    return tuple(sorted(found.items()))


def has_lists(root: Path) -> bool:
    """Whether apt was ever told what its sources have; if not, `available` has only what is installed.

    Images of clouds begin without. Whoever decides by `available` calls `packages.apt.update_lists` before, or decides
    otherwise in the first run than in the second.
    """
    return any((root / "var/lib/apt/lists").glob("*_Packages*"))


def lacks_lists(root: Path, facts: Facts) -> bool:
    """Whether what `available` says would be more after the lists of packages were fetched for the first time."""
    known = {name for name, _ in facts.available}
    return facts.package_manager is PackageManager.APT and not known.issuperset(NEEDED) and not has_lists(root)


def parse_policy(answer: str) -> dict[str, str]:
    """Candidates of `apt-cache policy`, without those that have none."""
    pairs = re.findall(r"^(\S+):\n(?:  .*\n)*?  Candidate: (\S+)$", answer, re.MULTILINE)
    return {name: version for name, version in pairs if version != "(none)"}


def rpm_available(root: Path, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    words = ("dnf", "--quiet", "--cacheonly", "repoquery", "--latest-limit=1", "--queryformat", "%{name}\t%{evr}\n")
    return tuple(sorted(parse_repoquery(output(root, *words, *names)).items()))


def parse_repoquery(answer: str) -> dict[str, str]:
    pairs = (line.split("\t") for line in answer.splitlines() if line.count("\t") == 1)
    return {name: version for name, version in pairs if name and version}


def output(root: Path, *command: str) -> str:
    """What a program of the machine writes; nothing if it fails or there is none."""
    words = command if root == Path("/") else ("chroot", str(root), *command)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    try:
        ran = subprocess.run(  # noqa: S603
            words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=QUERY_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode(errors="replace")


def is_cgroup2(root: Path) -> bool:
    """Whether the unified hierarchy has the controllers: in a hybrid one it exists beside those of version 1."""
    return (root / "sys/fs/cgroup/cgroup.controllers").exists()


def memory(root: Path) -> int:
    found = re.search(r"^MemTotal: +(\d+) kB", text(root / "proc/meminfo") or "", re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def swap(root: Path) -> bool:
    return len((text(root / "proc/swaps") or "").splitlines()) > 1


def is_container(root: Path) -> bool:
    """As systemd-detect-virt decides it: by the variable that the container's manager gave to the first process."""
    if (root / "run/systemd/container").exists() or (root / ".dockerenv").exists():
        return True
    try:
        return any(each.startswith(b"container=") for each in (root / "proc/1/environ").read_bytes().split(b"\0"))
    except OSError:
        return False


def systemd_version(bus: str) -> int:
    """Of the systemd that runs and answers; 0 if none does."""
    answer = asked(bus, SYSTEMD, ROOT, f"{SYSTEMD}.Manager", "Version")
    found = re.match(r"\d+", answer) if isinstance(answer, str) else None
    return int(found[0]) if found else 0


def clock_error(root: Path, bus: str) -> float | None:
    """0 if a service says that it keeps the clock synchronized; None if nobody says so."""
    if (root / SYNCHRONIZED).exists():
        return 0.0
    if (tracking := chrony(output(root, "chronyc", "-c", "tracking"))) is not None:
        return tracking
    service, path = "org.freedesktop.timedate1", "/org/freedesktop/timedate1"
    return 0.0 if asked(bus, service, path, service, "NTPSynchronized") is True else None


def chrony(answer: str) -> float | None:
    """The offset in a line of `chronyc -c tracking`; None if it is not synchronized, or does not run."""
    fields = answer.strip().split(",")
    try:
        return abs(float(fields[4])) if len(fields) > 13 and fields[13] != "Not synchronised" else None
    except ValueError:
        return None


def active_unit(bus: str, names: Sequence[str]) -> str:
    """The first of these units that is active, as of those that keep the clock; empty if none is, or nobody answers."""
    from protokube.host.dbus import Bus, BusError

    try:
        with Bus(bus, time.monotonic() + BUS_SECONDS) as connection:
            for name in names:
                path = connection.call(SYSTEMD, ROOT, f"{SYSTEMD}.Manager", "LoadUnit", "s", name)
                if connection.read(SYSTEMD, path, f"{SYSTEMD}.Unit", "ActiveState") == "active":
                    return name
    except (BusError, OSError, RuntimeError, ValueError):
        return ""
    return ""


def asked(bus: str, service: str, path: str, interface: str, name: str) -> Any:
    """A property over D-Bus; None if there is no bus, or no answer in time."""
    from protokube.host.dbus import Bus, BusError

    try:
        with Bus(bus, time.monotonic() + BUS_SECONDS) as connection:
            return connection.read(service, path, interface, name)
    except (BusError, OSError, RuntimeError, ValueError):
        return None


def refuse_unfit(facts: Facts, root: Path = Path("/"), bus_socket: str = "/run/dbus/system_bus_socket") -> None:
    """Refuse a machine on which nothing could be carried out, before anything is changed."""
    if root == Path("/") and not facts.systemd:
        if not (root / "run/systemd/system").is_dir():
            raise Refused(
                "this machine was not started by systemd", want="systemd as the first process", hint=NO_SYSTEMD
            )
        if not Path(bus_socket).exists():
            text = "this machine has no D-Bus, by which systemd is asked"
            raise Refused(text, saw=f"no {bus_socket}", hint="install dbus, and `systemctl start dbus.socket`")
        raise Refused("systemd does not answer on D-Bus", hint="`systemctl status dbus` shows whether the bus runs")
    if os.statvfs(root / "etc").f_flag & os.ST_RDONLY:
        raise Refused(
            f"{root} is read-only", want="a root file system that can be written", hint=f"`mount -o remount,rw {root}`"
        )
    if facts.package_manager is PackageManager.NONE:
        raise Refused(
            f"{facts.distribution or 'this distribution'} is not known here: it has neither apt nor dnf",
            want="Debian, Ubuntu, or a distribution with dnf",
        )


NO_SYSTEMD = "in a container or a chroot, use `--root`"
