"""Which paths of the machine each task owns, and which of these claims cannot hold together. Pure.

A path has one owner: two tasks that write one file would change it back and forth, in every run. A directory may be
declared beside what fills or covers it: a mount, or the programs of an archive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from protokube.nodeup.values import (
    Asset,
    Directory,
    File,
    Gone,
    Installed,
    Link,
    Module,
    Mount,
    Sysctl,
    Task,
    Unit,
)

UNITS, SYSCTLS, MODULES = "/etc/systemd/system", "/etc/sysctl.d", "/etc/modules-load.d"


class Shape(StrEnum):
    """What will be at a path."""

    FILE = "a file"
    LINK = "a link"
    NOTHING = "nothing"
    DIRECTORY = "a directory"
    MOUNT = "a mount"
    MEMBERS = "the members of an archive"


BESIDE = frozenset({Shape.DIRECTORY, Shape.MOUNT, Shape.MEMBERS})
"""Shapes that may share a path; two directories or two mounts have the same key, which is an error of its own."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A path and the task that owns it."""

    path: str
    shape: Shape
    key: str


def claims_of(task: Task) -> tuple[Claim, ...]:
    """Every path that a task makes; none for tasks about users, packages, assets and images."""
    return tuple(Claim(path, shape, task.key) for path, shape in _claimed(task))


def _claimed(task: Task) -> Iterator[tuple[str, Shape]]:
    match task:
        case File(path=path):
            yield path, Shape.FILE
        case Directory(path=path):
            yield path, Shape.DIRECTORY
        case Link(path=path):
            yield path, Shape.LINK
        case Gone(path=path):
            yield path, Shape.NOTHING
        case Mount(path=path):
            yield path, Shape.MOUNT
        case Installed(path=path, member=member):
            yield path, Shape.MEMBERS if member.endswith("*") else Shape.FILE
        case Unit() | Sysctl() | Module():
            yield from ((path, Shape.FILE) for path, _ in texts(task))


def texts(task: Unit | Sysctl | Module) -> Iterator[tuple[str, str]]:
    """Path and content of the files that such a task has."""
    match task:
        case Unit(name=name, content=content, drop_ins=drop_ins):
            if content is not None:
                yield f"{UNITS}/{name}", content
            yield from ((f"{UNITS}/{name}.d/{file}", text) for file, text in drop_ins.items())
        case Sysctl(file=file, values=values):
            yield f"{SYSCTLS}/{file}", "".join(f"{name} = {value}\n" for name, value in values.items())
        case Module(file=file, names=names):
            yield f"{MODULES}/{file}", "".join(f"{name}\n" for name in names)


def ancestors(path: str) -> Iterator[str]:
    """The directories above a path, the nearest one first; without the root."""
    while (path := path.rpartition("/")[0]) != "":
        yield path


def links_among(tasks: Sequence[Task]) -> Mapping[str, str]:
    """Where each declared link leads, by its path; as text, one step."""
    return {task.path: led_to(task.path, task.target) for task in tasks if isinstance(task, Link)}


def led_to(link: str, target: str) -> str:
    """The path that a link leads to."""
    parts: list[str] = []
    for part in (target if target.startswith("/") else f"{link.rpartition('/')[0]}/{target}").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def place_of(path: str, links: Mapping[str, str]) -> str:
    """Where a path lies once the declared links above it are followed: two names may be one file."""
    for _ in links:
        above = next((each for each in ancestors(path) if each in links), None)
        if above is None:
            break
        path = links[above].rstrip("/") + path[len(above) :]
    return path


def wrong_path(path: str) -> str:
    """Why this is no path that a task can own; empty if it is one."""
    if not path.startswith("/"):
        return "is relative"
    parts = path[1:].split("/")
    if ".." in parts:
        return "has `..` in it"
    if "" in parts or "." in parts:
        return "is not in its shortest form"
    if any(ord(each) < ord(" ") for each in path):
        return "has a control character in it"
    return ""


def problems_of_names(task: Task) -> Iterator[str]:
    """Names of files that are paths: they would lead out of the directory that they are for."""
    match task:
        case Unit(name=name, drop_ins=drop_ins):
            names: tuple[str, ...] = (name, *drop_ins)
        case Sysctl(file=name) | Module(file=name) | Asset(name=name):
            names = (name,)
        case _:
            return
    for name in names:
        if not name or "/" in name or name in (".", ".."):
            yield f"{task.key}: {name!r} is not the name of a file"


def problems_of_paths(tasks: Sequence[Task]) -> Iterator[str]:
    """Paths that no task can own, paths with two owners, and what lies below something that is no directory."""
    by_path: Mapping[str, list[Claim]] = defaultdict(list)
    links = links_among(tasks)
    for task in tasks:
        yield from problems_of_names(task)
        for claim in claims_of(task):
            if wrong := wrong_path(claim.path):
                yield f"{claim.key}: the path {claim.path!r} {wrong}"
            else:
                by_path[place_of(claim.path, links)].append(claim)
    for path, claims in by_path.items():
        keys = dict.fromkeys(claim.key for claim in claims)
        if len(keys) > 1 and not {claim.shape for claim in claims} <= BESIDE:
            yield f"{path} is claimed by {' and '.join(keys)}"
        for above in ancestors(path):
            for other in by_path.get(above, ()):
                if other.shape in (Shape.FILE, Shape.NOTHING):
                    yield f"{claims[0].key} is below {other.key}, where {other.shape} will be"
