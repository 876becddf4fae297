"""A list of tasks with one of each kind that needs no program, and what a tree of files is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from protokube.nodeup.values import Directory, File, Gone, Group, Link, Module, Task, Unit, User

SERVED = "/run/served"
"""What the process of the unit has read."""
OWN = ("var/log/protokube", "etc/.pwd.lock", "run/protokube")
"""What is not compared: traces, and locks."""


def the_tasks(version: str) -> tuple[Task, ...]:
    """What should be true of a machine that serves something, in one version or another."""
    return (
        Group(name="ssl", gid=150),
        User(name="etcd", home="/var/lib/etcd"),
        User(name="web", group="ssl"),
        Directory(path="/var/lib/etcd", mode=0o700, owner="etcd", group="etcd"),
        Directory(path="/etc/web", mode=0o750, owner="web", group="ssl"),
        File(path="/etc/web/conf", content=f"version {version}\n".encode(), owner="web", group="ssl"),
        File(path="/etc/web/key", content=b"secret" + version.encode(), mode=0o600, secret=True, owner="web"),
        File(path="/etc/first-boot", content=version.encode(), keep=True),
        File(path="/opt/deep/er/file", content=bytes(100_000), mode=0o4755),
        Link(path="/opt/now", target=f"v{version}"),
        Link(path="/usr/local/bin/web", target="/opt/now/web"),
        Gone(path="/etc/old.conf"),
        Gone(path="/etc/never-there"),
        File(path="/etc/wrong-mode", content=b"same", mode=0o600),
        Module(file="none.conf", names=()),
        Unit(name="web.service", running=True, restart_on=("file /etc/web/conf",)),
    )


def a_bare_root(folder: Path, accounts: Path) -> None:
    """What the image had: `accounts` is the /etc of a root with users and groups."""
    for name in ("etc", "run", "var/lib", "usr/local/bin", "proc", "tmp"):
        (folder / name).mkdir(parents=True)
    for each in accounts.iterdir():
        (folder / "etc" / each.name).write_bytes(each.read_bytes())
        (folder / "etc" / each.name).chmod(stat.S_IMODE(each.stat().st_mode))
    (folder / "etc/old.conf").write_bytes(b"old")
    (folder / "etc/wrong-mode").write_bytes(b"same")
    (folder / "etc/theirs").write_bytes(b"not ours")
    (folder / "etc/theirs").chmod(0o604)


def tree_of(root: Path, *, times: bool = False) -> dict[str, tuple[object, ...]]:
    """Everything below a folder: kind, mode, owner, content; with `times` also when it was changed."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(folder) / name
            inside = str(path.relative_to(root))
            if inside.startswith(OWN):
                continue
            status = path.lstat()
            content: object = None
            if stat.S_ISLNK(status.st_mode):
                content = str(path.readlink())
            elif stat.S_ISREG(status.st_mode):
                content = path.read_bytes()
            own = (status.st_mode, status.st_uid, status.st_gid, content)
            found[inside] = (*own, status.st_ino, status.st_mtime_ns, status.st_ctime_ns) if times else own
    return found
