"""The tasks of a machine as a `#cloud-config` document, for machines that cannot run nodeup at their first boot. Pure.

cloud-init works in fixed stages: files, users and mounts, packages, deferred files, commands. What fits into a stage
goes there; everything else becomes one script, in the order of the graph, that stops at its first error. A file goes
into the earliest stage that comes after all that it needs.

What the document cannot do is refused, not left out: secrets, since launch data can be read by every process of a
machine, and formatting, since nothing there proves that a disk is blank.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

import yaml

from protokube.errors import InvalidRequest
from protokube.nodeup.claims import texts
from protokube.nodeup.cloudinit.script import in_shell, steps
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.order import Graph
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
    Mount,
    Packages,
    Sysctl,
    Task,
    Unit,
    User,
)

HEADER = "#cloud-config\n# The tasks of protokube nodeup, for a machine on its first boot.\n"
POLICY = "/usr/sbin/policy-rc.d"
"""Asked by the packages of Debian whether a service may start: it may not, until the script begins."""


EXPRESSED = (
    File, Directory, Link, Gone, Group, User, Packages, Unit, Sysctl, Module, Mount, Asset, Installed, Image, Command,
)  # fmt: skip


class Stage(IntEnum):
    """The stages of cloud-init, in their order."""

    FILES = 0
    ACCOUNTS = 1
    PACKAGES = 2
    DEFERRED = 3
    SCRIPT = 4


def document(graph: Graph, facts: Facts, *, cache: str) -> str:
    """The whole document; InvalidRequest with every task that cannot be expressed."""
    if problems := [f"{task.key}: {problem}" for task in graph.tasks if (problem := inexpressible(task))]:
        raise InvalidRequest(
            f"{len(problems)} of the tasks cannot be expressed for cloud-init",
            saw="; ".join(problems),
            hint="let cloud-init run nodeup itself: the launch script is a cloud-init document, too",
        )
    stages = staged(graph)
    tasks = graph.tasks
    apt = facts.package_manager is PackageManager.APT and any(isinstance(task, Packages) for task in tasks)
    script = [f"rm -f {POLICY}"] if apt else []
    for task in tasks:
        script += steps(task, facts, cache=cache, written=stages[task.key] is not Stage.SCRIPT)
    parts: Mapping[str, Any] = {
        "groups": [task.name for task in tasks if isinstance(task, Group) and stages[task.key] is Stage.ACCOUNTS],
        "users": _users([task for task in tasks if isinstance(task, User) and stages[task.key] is Stage.ACCOUNTS]),
        "mounts": [_mount(task) for task in tasks if isinstance(task, Mount)],
        "write_files": [*([_policy()] if apt else []), *_files(tasks, stages)],
        "package_update": any(isinstance(task, Packages) for task in tasks),
        "packages": [_package(name) for task in tasks if isinstance(task, Packages) for name in task.names],
        "runcmd": [["sh", "-euc", "\n".join(script) + "\n"]] if script else [],
    }
    return HEADER + yaml.dump(
        {name: part for name, part in parts.items() if part}, Dumper=_Dumper, sort_keys=False, width=120
    )


def inexpressible(task: Task) -> str:
    """Why a task cannot be in the document; empty if it can."""
    if not isinstance(task, EXPRESSED):
        return "only nodeup itself can do this"
    if isinstance(task, File) and task.secret:
        return "its content is secret, and launch data are not"
    if isinstance(task, Mount) and task.format:
        return "nothing proves that the disk is blank before it is formatted"
    return ""


def staged(graph: Graph) -> Mapping[str, Stage]:
    """The stage of each task: after all that it needs."""
    stages: dict[str, Stage] = {}
    implied: dict[str, Stage] = {}
    for task in graph.tasks:
        earliest = max((implied[need] for need in graph.needs[task.key]), default=Stage.FILES)
        stages[task.key] = _stage(task, earliest)
        # directories above a file are made with it; the script gives them their rights
        implied[task.key] = earliest if isinstance(task, Directory) else stages[task.key]
    return stages


def _stage(task: Task, earliest: Stage) -> Stage:
    match task:
        case File(keep=False) | Unit() | Sysctl() | Module():
            if earliest is Stage.FILES:
                return Stage.FILES
            return Stage.DEFERRED if earliest < Stage.SCRIPT else Stage.SCRIPT
        case Group(gid=None) | User() | Mount() if earliest <= Stage.ACCOUNTS:
            return Stage.ACCOUNTS
        case Packages():
            return Stage.PACKAGES
    return Stage.SCRIPT


def _files(tasks: Sequence[Task], stages: Mapping[str, Stage]) -> Iterator[dict[str, Any]]:
    for task in tasks:
        stage = stages[task.key]
        if stage is Stage.SCRIPT:
            continue
        for path, content, mode, owner in written_by(task):
            yield {
                "path": path, "encoding": "b64", "content": base64.b64encode(content).decode(), "owner": owner,
                "permissions": f"{mode:04o}", **({"defer": True} if stage is Stage.DEFERRED else {}),
            }  # fmt: skip


def written_by(task: Task) -> Iterator[tuple[str, bytes, int, str]]:
    """Path, content, mode and owner of the files of a task."""
    match task:
        case File(path=path, content=content, mode=mode, owner=owner, group=group, keep=False):
            yield path, content, mode, f"{owner}:{group}"
        case Unit() | Sysctl() | Module():
            for path, text in texts(task):
                yield path, text.encode(), 0o644, "root:root"


def _policy() -> dict[str, Any]:
    text = in_shell("exit 101")
    return {"path": POLICY, "content": text, "owner": "root:root", "permissions": "0755"}


def _users(users: Sequence[User]) -> list[Any]:
    """With the user of the image, who is lost otherwise."""
    if not users:
        return []
    return ["default", *(_user(user) for user in users)]


def _user(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        **({"uid": user.uid} if user.uid is not None else {}),
        **({"primary_group": user.group} if user.group else {}),
        "homedir": user.home, "shell": user.shell, "system": True, "no_create_home": True, "lock_passwd": True,
    }  # fmt: skip


def _mount(mount: Mount) -> list[str]:
    return [mount.device, mount.path, mount.file_system, ",".join(mount.options), "0", "2"]


def _package(name: str) -> str | list[str]:
    plain, _, version = name.partition("=")
    return [plain, version] if version else plain


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as such, so that people can read the script."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


_Dumper.add_representer(str, _Dumper.represent_str)
