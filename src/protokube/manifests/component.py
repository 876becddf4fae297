"""The static pod of a control plane component: its flags, what it may read, and how one tells that it lives.

A component sees the folders of the files that its flags name, and nothing else of the machine: reading only, unless it
has to write there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from protokube.manifests.path_flags import READ, WRITTEN
from protokube.manifests.text import as_yaml

PROGRAMS = "/usr/local/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentPod:
    """One component as the configuration completes it."""

    name: str
    """`kube-apiserver`: pod, container, manifest and, unless it is said, program are called so."""
    image: str
    flags: Mapping[str, Any]
    program: tuple[str, ...] = ()
    """The first words of its command, where the program is not called as the component is."""
    cpu_request: str = ""
    memory_request: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Its configuration files, by path: a change of content is a change of the pod, which is then started again."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    also_reads: tuple[str, ...] = ()
    """Folders it needs that no flag names."""
    also_writes: tuple[str, ...] = ()
    probe: Mapping[str, Any] | None = None
    """How one tells that it lives."""
    privileged: bool = False

    @property
    def file_name(self) -> str:
        return f"{self.name}.manifest"


def pod(told: ComponentPod) -> str:
    """The manifest."""
    mounts = list(_mounts(told))
    container: dict[str, Any] = {
        "name": told.name,
        "image": told.image,
        "command": [*(told.program or (f"{PROGRAMS}/{told.name}",)), *words(told.flags)],
        "resources": {"requests": _requests(told)},
        "volumeMounts": [
            {"name": name, "mountPath": folder} | ({"readOnly": True} if reads else {})
            for name, folder, reads in mounts
        ],
    }
    if told.probe:
        container["livenessProbe"] = {
            **told.probe,
            "initialDelaySeconds": 15,
            "timeoutSeconds": 15,
            "failureThreshold": 8,
        }
    if told.privileged:
        container["securityContext"] = {"privileged": True}
    return as_yaml(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": told.name,
                "namespace": "kube-system",
                "labels": {"k8s-app": told.name},
                "annotations": {**told.annotations, **_digest(told.files)},
            },
            "spec": {
                "hostNetwork": True,
                "priorityClassName": "system-node-critical" if told.privileged else "system-cluster-critical",
                "tolerations": [{"operator": "Exists"}],
                "containers": [container],
                "volumes": [
                    {"name": name, "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}
                    for name, folder, _ in mounts
                ],
            },
        }
    )


def words(flags: Mapping[str, Any]) -> list[str]:
    """Flags as a command has them: a list is the same flag again and again."""
    return [
        f"--{name}={_word(each)}"
        for name, value in sorted(flags.items())
        for each in (value if isinstance(value, list) else [value])
    ]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _requests(told: ComponentPod) -> dict[str, str]:
    asked = {"cpu": told.cpu_request, "memory": told.memory_request}
    return {name: amount for name, amount in asked.items() if amount}


def _digest(files: Mapping[str, str]) -> dict[str, str]:
    if not files:
        return {}
    whole = hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()
    return {"protokube.io/files": whole[:16]}


def _mounts(told: ComponentPod) -> Iterator[tuple[str, str, bool]]:
    """Name, folder, and whether it is for reading only; no folder inside another that has the same rights."""
    writes = {_folder(path) for path in _paths(told.flags, WRITTEN)} | set(told.also_writes)
    reads = {_folder(path) for path in (*_paths(told.flags, READ), *told.files)} | set(told.also_reads)
    for folder in sorted(outermost(reads - writes) | writes):
        yield re.sub("[^a-z0-9]+", "-", folder.lower()).strip("-")[-63:].strip("-"), folder, folder not in writes


def _folder(path: str) -> str:
    return str(PurePosixPath(path).parent)


def outermost(folders: set[str]) -> set[str]:
    """Without those that lie inside another."""
    return {each for each in folders if not any(each.startswith(f"{other}/") for other in folders if other != each)}


def reads(told: ComponentPod) -> Iterator[str]:
    """The files and folders that its flags name for reading."""
    return _paths(told.flags, READ)


def _paths(flags: Mapping[str, Any], which: Collection[str]) -> Iterator[str]:
    """The files that some flags name; two may share a flag, as `certificate,key` do."""
    for name, value in flags.items():
        if name in which:
            for each in value if isinstance(value, list) else [value]:
                yield from (part for part in re.split("[,:]", str(each)) if part.startswith("/"))
