"""The root file system of a host: the machine's programs, read-only, and the host's own writable folders.

Programs are bind-mounted from the machine, not copied, so a host takes no disk space and no time. /etc, /var, /srv,
/mnt and /run are in the host's folder, where root can read them while it runs. The folder of the cloud, with its keys
and its admin socket, is hidden inside; only masters get the state store from it.

`lay_out` runs outside, before the host exists; `build` in its new, private mount namespace; `enter` as its init. When
init ends, every mount goes with the namespace.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from protokube.local.base import syscalls
from protokube.local.base.syscalls import MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REC, MS_SHARED, MS_SLAVE
from protokube.local.host.network import GATEWAY

OWN = ("etc", "var", "srv", "mnt", "run")
"""Writable, and readable from outside in the host's folder."""
FRESH = ("proc", "sys", "dev", "tmp")
"""Mounted fresh for each host."""
COPIED = (
    *("passwd", "group", "ld.so.cache", "ld.so.conf", "localtime"),
    *("protocols", "services", "mke2fs.conf", "os-release"),
)
"""Files of /etc that programs need."""
SHOWN = ("alternatives", "ssl", "pki", "crypto-policies", "ld.so.conf.d")
"""Folders of /etc that programs need; some hold a thousand links, so they are bind-mounted like programs."""
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
SITE = Path("/sys")
"""Where the root is assembled: the mount hides this folder, the only one of the machine not needed meanwhile."""
OUTSIDE = "run/protokube/outside"
"""The host's folder inside the host. Not just its socket: a bind mount would keep a socket that was replaced."""


def lay_out(folder: Path, name: str, address: str) -> None:
    """Create a host's own folders, unless they exist; a reboot keeps all but /run."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    for own in (*OWN, "log"):
        (folder / own).mkdir(parents=True, exist_ok=True)
    for inside in ("run/protokube", "run/lock", OUTSIDE, "var/log", "var/lib", "var/cache"):
        (folder / inside).mkdir(parents=True, exist_ok=True)
    (folder / "var" / "tmp").mkdir(exist_ok=True)
    (folder / "var" / "tmp").chmod(0o1777)
    for link, target in (("var/run", "/run"), ("run/protokube/cloud.sock", "outside/cloud.sock")):
        if not (folder / link).is_symlink():
            (folder / link).symlink_to(target)
    _write_etc(folder / "etc", name, address)


def _write_etc(etc: Path, name: str, address: str) -> None:
    """Write files that programs need; existing ones stay, except hostname and resolv.conf."""
    for file in COPIED:
        if Path("/etc", file).exists() and not (etc / file).exists():
            shutil.copy(Path("/etc", file), etc / file)
    if not (etc / "mtab").is_symlink():
        (etc / "mtab").symlink_to("/proc/self/mounts")
    for file, text in (
        ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
        ("hosts", f"127.0.0.1 localhost\n{address} {name}\n"),
        ("machine-id", f"{secrets.token_hex(16)}\n"),
    ):
        if not (etc / file).exists():
            (etc / file).write_text(text)
    (etc / "hostname").write_text(f"{name}\n")
    (etc / "resolv.conf").write_text(f"nameserver {GATEWAY}\noptions timeout:1 attempts:3\n")


def hidden(paths: Iterable[str], state: Path) -> Sequence[str]:
    """Which of these paths would be hidden: those below the host's own folders or below `state`; outermost only."""
    parts = {path: Path(path) for path in paths if path.startswith("/")}
    below = {path for path, place in parts.items() if _is_own(place) or state in place.parents}
    there = sorted(path for path in below if Path(path).exists())
    return [path for path in there if not any(_covers(other, path, state) for other in there)]


def _covers(other: str, path: str, state: Path) -> bool:
    """Whether a mount of `other` includes `path`; paths below the hidden `state` are mounted separately."""
    return path.startswith(f"{other}/") and (state not in Path(path).parents or state in Path(other).parents)


def _is_own(path: Path) -> bool:
    return len(path.parts) > 2 and path.parts[1] in (*OWN, *FRESH)


def build(folder: Path, state: Path, store: Path | None, programs: Iterable[str]) -> None:
    """Assemble the root at SITE; `programs` are made visible wherever they are, and `state` is hidden."""
    syscalls.mount(None, "/", None, MS_REC | MS_SLAVE)  # our mounts stay private; unmounts of the machine reach us
    syscalls.mount("protokube", str(SITE), "tmpfs", MS_NOSUID, "mode=755,size=64m")
    for entry in os.scandir("/"):
        if entry.name not in (*OWN, *FRESH, "lost+found"):
            _show(entry, SITE / entry.name)
    _make_fresh()
    for own in OWN:
        _bind(folder / own, SITE / own)
    for folder_of_etc in SHOWN:
        if Path("/etc", folder_of_etc).is_dir():
            _bind(Path("/etc", folder_of_etc), SITE / "etc" / folder_of_etc, writable=False)
    shown = hidden(programs, state)
    around = [program for program in shown if Path(program) in state.parents]
    for program in around:
        _bind(Path(program), SITE / program.lstrip("/"), writable=False)
    if around or not _is_own(state):  # it is in a folder of the machine that hosts see
        syscalls.mount("hidden", str(SITE / state.relative_to("/")), "tmpfs", MS_NOSUID | MS_NODEV, "mode=700,size=64k")
    for program in shown:
        if program not in around:
            _bind(Path(program), SITE / program.lstrip("/"), writable=False)
    _bind(folder, SITE / OUTSIDE, writable=False)
    if store:
        _bind(store, SITE / "srv/protokube/store")


def _show(entry: os.DirEntry[str], target: Path) -> None:
    """Expose one entry of the machine's root: copy a link, bind a file or folder read-only, skip anything else."""
    if entry.is_symlink():
        target.symlink_to(Path(entry.path).readlink())
    elif entry.is_dir() or entry.is_file():
        _bind(Path(entry.path), target, writable=False)


def _bind(source: Path, target: Path, *, writable: bool = True) -> None:
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    syscalls.bind(str(source), str(target))
    if not writable:
        syscalls.make_read_only(str(target))


def _make_fresh() -> None:
    for fresh in FRESH:
        (SITE / fresh).mkdir()
    syscalls.mount("tmp", str(SITE / "tmp"), "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    syscalls.mount("sysfs", str(SITE / "sys"), "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY)
    dev = SITE / "dev"
    syscalls.mount("dev", str(dev), "tmpfs", MS_NOSUID, "mode=755,size=1m")
    for name, number in DEVICES.items():
        os.mknod(dev / name, stat.S_IFCHR, os.makedev(*number))
        (dev / name).chmod(0o666)
    for name, target in LINKS.items():
        (dev / name).symlink_to(target)
    for name, kind, options in (("pts", "devpts", "newinstance,ptmxmode=666,mode=620"), ("shm", "tmpfs", "mode=1777")):
        (dev / name).mkdir()
        syscalls.mount(name, str(dev / name), kind, MS_NOSUID | MS_NOEXEC, options)


def enter() -> None:
    """Make SITE the root of this mount namespace. Runs as the init of the host: /proc shows its PID namespace."""
    syscalls.mount("proc", str(SITE / "proc"), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    syscalls.become_root(str(SITE))
    # Pods have their own mount namespaces: unmounts of the host must propagate to them.
    syscalls.mount(None, "/", None, MS_REC | MS_SHARED)
