"""Static pods: the values that this runner supports, and decoding them from a manifest.

A manifest is written for kubelet, which supports more. Fields that can be ignored without harm (resources, ports)
are; a field that would change the meaning of the pod is refused by name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from protokube import fast_yaml
from protokube.local.pods.fields import Fields, PodProblem
from protokube.local.pods.probestate import Probe, read_probe

POLICIES = ("Always", "OnFailure", "Never")
HOST_PATHS = ("", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
NEEDS_KUBELET = ("initContainers", "ephemeralContainers", "hostPID", "hostIPC", "shareProcessNamespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeMount:
    """A hostPath volume, mounted into a container."""

    host_path: str
    kind: str
    """One of HOST_PATHS: what must exist, or is created."""
    sub_path: str
    mount_path: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    name: str
    image: str
    """Empty if the manifest names none."""
    command: tuple[str, ...]
    """Program and arguments, with every $(VARIABLE) replaced."""
    environment: tuple[tuple[str, str], ...]
    working_dir: str
    mounts: tuple[VolumeMount, ...]
    liveness: Probe | None
    readiness: Probe | None
    startup: Probe | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    namespace: str
    name: str
    digest: str
    """A hash of the manifest's content, independent of its formatting."""
    containers: tuple[ContainerSpec, ...]
    grace: float
    """Seconds between SIGTERM and SIGKILL."""
    restart_policy: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def read_pod(text: str) -> Pod:
    """Decode a manifest; raises PodProblem with a message for its author."""
    document = _decode(text)
    top = Fields(document, "")
    if top.text("kind") != "Pod":
        raise PodProblem(f"kind is {top.text('kind')!r}, not Pod")
    metadata, spec = top.section("metadata"), top.section("spec")
    _refuse(spec)
    volumes = dict(_read_volume(volume) for volume in spec.sections("volumes"))
    containers = tuple(_read_container(container, volumes) for container in spec.sections("containers"))
    if not containers:
        raise PodProblem("spec.containers is empty")
    if len({container.name for container in containers}) < len(containers):
        raise PodProblem("spec.containers: two have the same name")
    return Pod(
        namespace=metadata.name("namespace", default="default"),
        name=metadata.name("name"),
        digest=_digest(document),
        containers=containers,
        grace=spec.number("terminationGracePeriodSeconds", default=30.0),
        restart_policy=spec.one_of("restartPolicy", POLICIES, default="Always"),
    )


def _decode(text: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as why:
            raise PodProblem(f"not JSON: {why}") from why
    else:
        import yaml  # not needed if all manifests are JSON

        try:
            document = fast_yaml.load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as why:
            raise PodProblem(f"not YAML: {' '.join(str(why).split())}") from why
    if not isinstance(document, dict):
        raise PodProblem("not a pod: the file holds no mapping")
    return document


def _digest(document: dict[str, Any]) -> str:
    try:
        plain = json.dumps(document, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError) as why:  # keys that are not strings, a recursive document
        raise PodProblem(f"not a plain document: {why}") from why
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()[:16]


def _refuse(spec: Fields) -> None:
    if not spec.flag("hostNetwork"):
        raise PodProblem("spec.hostNetwork is not true: pods with a network of their own need a real kubelet")
    for name in NEEDS_KUBELET:
        if spec.value(name):
            raise PodProblem(f"spec.{name} needs a real kubelet")


def _read_volume(volume: Fields) -> tuple[str, tuple[str, str]]:
    if volume.value("hostPath") is None:
        others = ", ".join(sorted(set(volume.keys()) - {"name"}))
        raise PodProblem(f"{volume.path}: {others or 'no source'}; only hostPath volumes are possible here")
    source = volume.section("hostPath")
    return volume.text("name"), (source.absolute("path"), source.one_of("type", HOST_PATHS, default=""))


def _read_container(container: Fields, volumes: Mapping[str, tuple[str, str]]) -> ContainerSpec:
    environment = _read_environment(container)
    words = [*container.texts("command"), *container.texts("args")]
    if not container.texts("command"):
        raise PodProblem(
            f"{container.path}.command is empty: images are not pulled here, so the manifest must name the program"
        )
    ports = {
        port.text("name"): int(port.number("containerPort")) for port in container.sections("ports") if "name" in port
    }
    probes = {name: read_probe(container.section(name), ports) for name in PROBES if name in container}
    return ContainerSpec(
        name=container.name("name"),
        image=container.text("image", default=""),
        command=tuple(expand(word, environment) for word in words),
        environment=tuple(environment.items()),
        working_dir=container.absolute("workingDir", default="/"),
        mounts=tuple(_read_mount(mount, volumes) for mount in container.sections("volumeMounts")),
        liveness=probes.get("livenessProbe"),
        readiness=probes.get("readinessProbe"),
        startup=probes.get("startupProbe"),
    )


def _read_environment(container: Fields) -> dict[str, str]:
    """In order: a variable may use those before it."""
    if container.value("envFrom"):
        raise PodProblem(f"{container.path}.envFrom needs a real kubelet")
    environment: dict[str, str] = {}
    for variable in container.sections("env"):
        if variable.value("valueFrom") is not None:
            raise PodProblem(f"{variable.path}.valueFrom needs a real kubelet")
        name = variable.text("name")
        if not name or "=" in name:
            raise PodProblem(f"{variable.path}.name is {name!r}, not the name of a variable")
        environment[name] = expand(variable.text("value", default=""), environment)
    return environment


def _read_mount(mount: Fields, volumes: Mapping[str, tuple[str, str]]) -> VolumeMount:
    name = mount.text("name")
    if name not in volumes:
        raise PodProblem(f"{mount.path}: there is no volume {name!r}")
    sub_path = mount.text("subPath", default="")
    if sub_path.startswith("/") or ".." in sub_path.split("/"):
        raise PodProblem(f"{mount.path}.subPath: {sub_path!r} leads out of the volume")
    if mount.value("subPathExpr"):
        raise PodProblem(f"{mount.path}.subPathExpr needs a real kubelet")
    mount_path = str(PurePosixPath(mount.absolute("mountPath")))
    if mount_path == "/":
        raise PodProblem(f"{mount.path}.mountPath is the root itself")
    host_path, kind = volumes[name]
    return VolumeMount(
        host_path=host_path,
        kind=kind,
        sub_path=sub_path,
        mount_path=mount_path,
        read_only=mount.flag("readOnly"),
    )


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Replace $(NAME) as Kubernetes does: $$ is one $, and an unknown name stays as written."""
    parts: list[str] = []
    position = 0
    while (dollar := text.find("$", position)) >= 0:
        parts.append(text[position:dollar])
        position = dollar + 2
        match text[dollar + 1 : dollar + 2]:
            case "$":
                parts.append("$")
            case "(" if (end := text.find(")", position)) >= 0:
                name = text[position:end]
                parts.append(environment.get(name, f"$({name})"))
                position = end + 1
            case other:
                parts.append(f"${other}")
    return "".join((*parts, text[position:]))


def order_of_mounting(mounts: Sequence[VolumeMount]) -> Sequence[VolumeMount]:
    """Outer mount points before inner ones, so that no mount hides another."""
    return sorted(mounts, key=lambda mount: len(PurePosixPath(mount.mount_path).parts))
