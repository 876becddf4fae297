"""The static pod of a control plane component: its flags, mounts and liveness probe.

A component mounts the directories of the files that its flags name, and nothing else of the machine: read-only, unless
it has to write there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from protokube.manifests.path_flags import READ, WRITTEN
from protokube.manifests.text import as_yaml

PROGRAMS = "/usr/local/bin"
OWN_FILES = "protokube.io/files"
Scalar = str | int | float | bool
Flags = Mapping[str, Scalar | list[Scalar]]
"""By name, without the dashes; a list repeats the flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentPod:
    """One component of the complete configuration."""

    name: str
    """`kube-apiserver`: the name of the pod, the container, the manifest and, unless `program` is set, the binary."""
    image: str
    flags: Flags
    program: tuple[str, ...] = ()
    """The beginning of its command, if the binary does not have the component's name."""
    cpu_request: str = ""
    memory_request: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Content of its configuration files by path: a change of content changes the pod, so that kubelet restarts it."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    also_reads: tuple[str, ...] = ()
    """Directories that it reads and that no flag names."""
    also_writes: tuple[str, ...] = ()
    probe: Mapping[str, Any] | None = None
    """Its liveness probe."""
    privileged: bool = False

    @property
    def file_name(self) -> str:
        return f"{self.name}.manifest"


def pod(component: ComponentPod) -> str:
    """The manifest."""
    mounts = list(_mounts(component))
    container: dict[str, Any] = {
        "name": component.name,
        "image": component.image,
        "command": [*(component.program or (f"{PROGRAMS}/{component.name}",)), *words(component.flags)],
        "resources": {"requests": _requests(component)},
        "volumeMounts": [
            {"name": name, "mountPath": folder} | ({"readOnly": True} if reads else {})
            for name, folder, reads in mounts
        ],
    }
    if component.probe:
        container["livenessProbe"] = {
            **component.probe,
            "initialDelaySeconds": 15,
            "timeoutSeconds": 15,
            "failureThreshold": 8,
        }
    if component.privileged:
        container["securityContext"] = {"privileged": True}
    return as_yaml(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": component.name,
                "namespace": "kube-system",
                "labels": {"k8s-app": component.name},
                "annotations": {**component.annotations, **_own_files(component)},
            },
            "spec": {
                "hostNetwork": True,
                "priorityClassName": "system-node-critical" if component.privileged else "system-cluster-critical",
                "tolerations": [{"operator": "Exists"}],
                "containers": [container],
                "volumes": [
                    {"name": name, "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}
                    for name, folder, _ in mounts
                ],
            },
        }
    )


def words(flags: Flags) -> list[str]:
    """Flags as command line arguments."""
    return [
        f"--{name}={_word(each)}"
        for name, value in sorted(flags.items())
        for each in (value if isinstance(value, list) else [value])
    ]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _requests(component: ComponentPod) -> dict[str, str]:
    requests = {"cpu": component.cpu_request, "memory": component.memory_request}
    return {name: amount for name, amount in requests.items() if amount}


def digest(files: Iterable[tuple[str, str]]) -> str:
    """Of paths and contents, in any order: in an annotation, it has kubelet restart the pod when a file changes."""
    return hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()[:16]


def _own_files(component: ComponentPod) -> dict[str, str]:
    return {OWN_FILES: digest(component.files.items())} if component.files else {}


def _mounts(component: ComponentPod) -> Iterator[tuple[str, str, bool]]:
    """Name, directory, and whether it is read-only; no directory inside another of the same access mode."""
    writes = {_folder(path) for path in _paths(component.flags, WRITTEN)} | set(component.also_writes)
    reads = {_folder(path) for path in (*_paths(component.flags, READ), *component.files)} | set(component.also_reads)
    for folder in sorted(outermost(reads - writes) | writes):
        yield re.sub("[^a-z0-9]+", "-", folder.lower()).strip("-")[-63:].strip("-"), folder, folder not in writes


def _folder(path: str) -> str:
    return str(PurePosixPath(path).parent)


def outermost(folders: set[str]) -> set[str]:
    """Without directories that are inside another."""
    return {each for each in folders if not any(each.startswith(f"{other}/") for other in folders if other != each)}


def reads(component: ComponentPod) -> Iterator[str]:
    """The files and directories to read that its flags name."""
    return _paths(component.flags, READ)


def _paths(flags: Flags, which: Collection[str]) -> Iterator[str]:
    """The files that some flags name; two may share a flag, as `certificate,key` do."""
    for name, value in flags.items():
        if name in which:
            for each in value if isinstance(value, list) else [value]:
                yield from (part for part in re.split("[,:]", str(each)) if part.startswith("/"))
