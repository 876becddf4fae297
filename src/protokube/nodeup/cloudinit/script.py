"""The steps of tasks as lines of a shell script, for the last stage of cloud-init. Pure.

The script runs once, on a machine that is as its image was: it says how a task is carried out, and compares nothing.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator

from protokube.nodeup.claims import SYSCTLS, texts
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.values import (
    Asset,
    Command,
    Directory,
    File,
    Gone,
    Group,
    Image,
    Installed,
    Link,
    Module,
    Packages,
    Sysctl,
    Task,
    Unit,
    User,
)

SECONDS_TO_CONNECT = 20


def in_shell(line: str) -> str:
    return f"#!/bin/sh\n{line}\n"


def steps(task: Task, facts: Facts, *, cache: str, written: bool) -> Iterator[str]:
    """The lines for one task. `written`: whether an earlier stage has its files, or the task itself."""
    match task:
        case File() if not written:
            yield from _file(task)
        case Directory() | Link() | Gone():
            yield from _path(task)
        case Group() | User() if not written:
            yield _account(task)
        case Packages() if task.holds:
            yield _hold(task.holds, facts)
        case Asset():
            yield from _fetch(task, cache)
        case Installed():
            yield from _install(task, cache)
        case Image(asset=asset):
            yield words("ctr", "--namespace", "k8s.io", "images", "import", f"{cache}/{asset}")
        case Command(run=run, check=check):
            yield f"{words(*check)} || {words(*run)}"
        case Unit() | Sysctl() | Module():
            yield from _with_file(task, written=written)


def _path(task: Directory | Link | Gone) -> Iterator[str]:
    match task:
        case Directory(path=path, mode=mode, owner=owner, group=group):
            yield words("install", "-d", "-m", f"{mode:04o}", "-o", owner, "-g", group, path)
        case Link(path=path, target=target):
            yield words("mkdir", "-p", path.rpartition("/")[0] or "/")
            yield words("ln", "-sfnT", target, path)
        case Gone(path=path):
            yield words("rm", "-f", path)


def words(*each: str) -> str:
    return shlex.join(each)


def _file(file: File) -> Iterator[str]:
    """The content goes to a draft that is private until it has its owner, as everywhere else."""
    draft, path = shlex.quote(f"{file.path}.draft"), shlex.quote(file.path)
    yield words("mkdir", "-p", file.path.rpartition("/")[0] or "/")
    lines = [
        f"(umask 077; echo {base64.b64encode(file.content).decode()} | base64 -d > {draft})",
        f"chown {shlex.quote(f'{file.owner}:{file.group}')} {draft}",
        f"chmod {file.mode:04o} {draft}",
        f"mv -T {draft} {path}",
    ]
    if file.keep:
        yield f"test -e {path} || {{ {' && '.join(lines)}; }}"
    else:
        yield from lines


def _with_file(task: Unit | Sysctl | Module, *, written: bool) -> Iterator[str]:
    if not written:
        for path, text in texts(task):
            yield from _file(File(path=path, content=text.encode()))
    match task:
        case Unit():
            yield from _unit(task)
        case Sysctl(file=file):
            yield words("sysctl", "-p", f"{SYSCTLS}/{file}")
        case Module(names=names):
            yield words("modprobe", "--all", *names)


def _unit(unit: Unit) -> Iterator[str]:
    if unit.content is not None or unit.drop_ins:
        yield "systemctl daemon-reload"
    if unit.enabled is not None:
        yield words("systemctl", "enable" if unit.enabled else "disable", unit.name)
    if unit.running is not None:
        # restart: its package may have started it before its files were there
        yield words("systemctl", "restart" if unit.running else "stop", unit.name)


def _account(task: Group | User) -> str:
    name = shlex.quote(task.name)
    if isinstance(task, Group):
        number = ["--gid", str(task.gid)] if task.gid is not None else []
        return f"getent group {name} >/dev/null || {words('groupadd', '--system', *number, task.name)}"
    number = ["--uid", str(task.uid)] if task.uid is not None else []
    group = ["--gid", task.group] if task.group else ["--user-group"]
    rest = ["--no-create-home", "--home-dir", task.home, "--shell", task.shell, task.name]
    return f"getent passwd {name} >/dev/null || {words('useradd', '--system', *number, *group, *rest)}"


def _hold(plain: tuple[str, ...], facts: Facts) -> str:
    if facts.package_manager is PackageManager.APT:
        return words("apt-mark", "hold", *plain)
    return words("dnf", "versionlock", "add", *plain)


def _fetch(asset: Asset, cache: str) -> Iterator[str]:
    """From the first source whose file has the digest: what a source says of its file makes no difference."""
    place, draft = shlex.quote(f"{cache}/{asset.name}"), shlex.quote(f"{cache}/.{asset.name}.draft")
    yield words("mkdir", "-p", cache)
    yield f"for url in {words(*asset.urls)}; do"
    yield f'  curl -fsSL --connect-timeout {SECONDS_TO_CONNECT} --retry 5 -o {draft} "$url" || continue'
    yield f"  if echo '{asset.sha256}  '{draft} | sha256sum -c - >/dev/null 2>&1; then mv -T {draft} {place}; break; fi"
    yield f'  echo "{shlex.quote(asset.name)}: wrong digest from $url" >&2'
    yield "done"
    yield f"echo '{asset.sha256}  '{place} | sha256sum -c -"


def _install(task: Installed, cache: str) -> Iterator[str]:
    archive, mode = f"{cache}/{task.asset}", f"{task.mode:04o}"
    if not task.member:
        yield words("install", "-D", "-m", mode, archive, task.path)
        return
    yield "unpacked=$(mktemp -d)"
    yield f'tar -xf {shlex.quote(archive)} -C "$unpacked"'
    if task.member.endswith("*"):
        folder = shlex.quote(task.member.rpartition("/")[0])
        yield words("mkdir", "-p", task.path)
        install = f"install -m {mode} -t {shlex.quote(task.path)} {{}} +"
        yield f'find "$unpacked"/{folder} -maxdepth 1 -type f -exec {install}'
    else:
        yield f'install -D -m {mode} "$unpacked"/{shlex.quote(task.member)} {shlex.quote(task.path)}'
    yield 'rm -rf "$unpacked"'
