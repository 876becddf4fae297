"""Keep copies of our manifests out of the kubelet's manifest directory, so that no component runs twice.

The kubelet runs every file there whose name does not begin with a dot, so an editor's backup of a manifest starts a
second API server. Such copies are moved aside, never deleted. Pods of other names are left alone. A duplicate that the
launch data ask for stays and is reported: it would be written again in every round.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from protokube.agent import links
from protokube.agent.cache import StepCache
from protokube.agent.controlplane.podidentity import Reading, read
from protokube.agent.round import Round
from protokube.errors import TryLater
from protokube.host.aside import set_aside
from protokube.host.bounded import bounded

STEP = "manifests"
ASIDE = "/var/lib/protokube/set-aside"
PATIENCE = 1.0
Kind = Literal["file", "link", "dir", "other"]

COPY = re.compile(
    r"""(
      ~ | \.~\d+~                                                                           # editors
    | [._\ -]?(bak|backup|back|old|orig|original|save|saved|copy|tmp|temp|new|rej|prev|disabled|off|sw[op])\d*
    | \.(rpm(save|new|orig)|dpkg-(old|new|dist|tmp|bak|backup|remove)|ucf-(old|new|dist))    # package managers
    | [._-]\d[\d.T:Z_-]*                                                                    # a number or a date
    | \ ?\(.*\)                                                                             # (copy), (1)
    ){1,2}""",
    re.VERBOSE | re.IGNORECASE,
)
"""Suffixes that name a copy of a file."""


@dataclass(slots=True)
class ManifestsCache(StepCache):
    read: dict[str, Reading] = field(default_factory=dict)
    """By file name: the parsed content of a file that is not ours, and which version of it."""
    reported: dict[str, str] = field(default_factory=dict)
    """By file name: the last reported reason why it is not a pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the kubelet's manifest directory."""

    name: str
    kind: Kind
    pod: str = ""
    """`kube-system/kube-apiserver`; "" where it cannot be read as a pod."""
    problem: str = ""
    """Why it cannot be read as a pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A file to move aside, and why."""

    name: str
    why: str


def guard(entries: Sequence[Entry], ours: Mapping[str, str]) -> list[Aside]:
    """Which files to set aside; `ours` has the pod by the name of each file that is ours to write."""
    found = []
    for entry in sorted(entries, key=lambda entry: entry.name):
        if entry.name in ours or entry.name.startswith(".") or entry.kind not in ("file", "link"):
            continue
        if original := next((name for name, pod in sorted(ours.items()) if pod == entry.pod), None):
            found.append(Aside(name=entry.name, why=f"it names {entry.pod}, as {original} does"))
        elif entry.kind == "file" and (original := copy_of(entry.name, ours)):
            found.append(Aside(name=entry.name, why=f"its name is that of a copy of {original}"))
    return found


def copy_of(name: str, ours: Mapping[str, str]) -> str | None:
    """Which of our files this is named as a copy of."""
    for each in sorted(ours, key=len, reverse=True):
        if name == f"#{each}#" or (name.startswith(each) and COPY.fullmatch(name, len(each))):
            return each
    return None


def sync(round_: Round) -> None:
    """Move copies aside and report them; a file that is not a pod is left alone and reported once."""
    ours = files_of(round_)
    entries = look(round_, ours)
    asides = guard(entries, ours)
    requested = requested_files(round_) if asides else set()
    for aside in asides:
        if aside.name in requested:
            hint = "give its pod another name, or take the file out of the spec"
            round_.report.needs_a_person(STEP, f"the spec asks for it, though {aside.why}", shown(aside.name), hint)
            continue
        try:
            _move(round_, aside)
        except OSError as why:
            round_.waiting(STEP, shown(aside.name), f"cannot be set aside ({aside.why}): {why.strerror or why}")
    _report_unreadable(
        round_, [each for each in entries if each.problem and each.name not in {aside.name for aside in asides}]
    )


def _move(round_: Round, aside: Aside) -> None:
    edges = round_.edges
    stamp = datetime.fromtimestamp(edges.clock.now(), UTC).strftime("%Y%m%dT%H%M%SZ")
    place = set_aside(edges.inside(links.DIRECTORY) / aside.name, edges.inside(ASIDE), stamp)
    if place is None:  # its owner has removed it meanwhile
        return
    why = f"or the kubelet would run it beside ours: {aside.why}"
    hint = "change the spec instead, and keep copies in another folder"
    round_.report.done(STEP, f"set aside as {ASIDE}/{shown(place.name)}, {why}; {hint}", shown(aside.name))


def _report_unreadable(round_: Round, entries: Sequence[Entry]) -> None:
    reported = round_.edges.cache.of(ManifestsCache).reported
    for entry in entries:
        if reported.get(entry.name) != entry.problem:
            reported[entry.name] = entry.problem
            round_.report.done(STEP, f"left alone, not read as a pod: {entry.problem}", shown(entry.name))


def shown(name: str) -> str:
    """A name that is safe to log."""
    return name if name.isprintable() else ascii(name)


def files_of(round_: Round) -> dict[str, str]:
    """The pod by the name of each file that we write, now or later."""
    pods = {each.file_name: each.name for each in round_.wanted.components}
    pods |= {each.pod.file_name: each.pod.name for each in round_.wanted.etcd}
    return {file: f"kube-system/{name}" for file, name in pods.items()}


def requested_files(round_: Round) -> set[str]:
    """Names in the kubelet's manifest directory that the launch data ask for."""
    wanted, folder = round_.wanted, os.path.realpath(round_.edges.inside(links.DIRECTORY))
    paths = [*wanted.files, *wanted.secret_files, *wanted.kubeconfigs]
    paths += [path for component in wanted.components for path in component.files]
    places = [round_.edges.inside(path) for path in paths]
    return {place.name for place in places if os.path.realpath(place.parent) == folder}


def look(round_: Round, ours: Mapping[str, str]) -> list[Entry]:
    """Entries that are not ours; an unchanged file is not read again."""
    try:
        with os.scandir(round_.edges.inside(links.DIRECTORY)) as listed:
            found = [each for each in listed if each.name not in ours and not each.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        found = []
    cache, names = round_.edges.cache.of(ManifestsCache), {each.name for each in found}
    cache.read = {name: reading for name, reading in cache.read.items() if name in names}
    cache.reported = {name: problem for name, problem in cache.reported.items() if name in names}
    entries = [_entry(round_, each) for each in found]
    return [each for each in entries if each is not None]


def _entry(round_: Round, listed: os.DirEntry[str]) -> Entry | None:
    kind, readings = _kind(listed), round_.edges.cache.of(ManifestsCache).read
    if kind not in ("file", "link"):
        return Entry(name=listed.name, kind=kind)
    before = readings.get(listed.name)
    try:  # a link may lead to a disk that is dead
        reading = bounded(lambda: read(Path(listed.path), before), PATIENCE, f"reading {listed.path}")
    except FileNotFoundError:  # gone meanwhile, or a link that leads nowhere
        return Entry(name=listed.name, kind=kind) if kind == "link" else None
    except TryLater:
        return Entry(name=listed.name, kind=kind, problem="it cannot be read: its disk does not answer")
    except OSError as why:
        return Entry(name=listed.name, kind=kind, problem=f"it cannot be read: {(why.strerror or str(why)).lower()}")
    readings[listed.name] = reading
    return Entry(name=listed.name, kind=kind, pod=reading.pod, problem=reading.problem)


def _kind(listed: os.DirEntry[str]) -> Kind:
    if listed.is_symlink():
        return "link"
    if listed.is_dir(follow_symlinks=False):
        return "dir"
    return "file" if listed.is_file(follow_symlinks=False) else "other"
