"""Build container images from programs of this machine, without a builder and without a registry.

An image is one layer of a few files: the program, where its manifest expects it, and its shared libraries. Builds are
reproducible: the same files give the same archive, bit for bit.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from protokube.binaries.executables import which
from protokube.errors import Refused
from protokube.host.files import write_atomic
from protokube.images import elf
from protokube.images.bytecode import compiled
from protokube.images.names import normalise

PROGRAMS = "/usr/local/bin"
"""The folder from which our manifests run programs."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
RESOLVER = {"/etc/nsswitch.conf": b"hosts: files dns\n"}
FOLDERS = ("lib/*-linux-gnu", "usr/lib/*-linux-gnu")
"""Where Debian packages have shared libraries, and where the loader looks for them."""
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The content of an image."""

    name: str
    """As in manifests: `registry.k8s.io/etcd:3.4.23-0`."""
    files: Mapping[str, Path]
    """Files of this machine by their path in the image."""
    command: tuple[str, ...] = ()
    """The default command (`Cmd`)."""
    entry: tuple[str, ...] = ()
    """The entry point (`Entrypoint`), which gets the arguments of a manifest."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Contents of generated files, by path in the image."""
    bytecode: bool = False
    """Whether to add the bytecode of its Python modules."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Targets of symbolic links, by path in the image."""
    folders: Mapping[str, int] = field(default_factory=dict)
    """Modes of folders that are empty, or not 0755."""
    modes: Mapping[str, int] = field(default_factory=dict)
    """Modes of files that are not 0755."""
    user: str = ""
    """The default user; root if empty."""


def of_program(name: str, program: Path) -> Image:
    """An image of one program and its libraries."""
    return Image(name=name, files={f"{PROGRAMS}/{program.name}": program, **libraries(program)})


def of_pause(name: str, busybox: Path) -> Image:
    """The pause image, whose container holds the namespaces of its pod."""
    if libraries(busybox):
        raise Refused(f"{busybox} cannot be the pause image", want="one that needs no libraries", hint="busybox-static")
    return Image(name=name, files={"/busybox": busybox}, command=("/busybox", "sleep", "2147483647"))


def libraries(*programs: Path, roots: Sequence[Path] = ()) -> dict[str, Path]:
    """Shared libraries of programs and plugins, by path in the image; empty for static programs.

    `roots` are unpacked packages with libraries that this machine may lack.
    """
    loading = [program for program in programs if not elf.is_static(program)]
    if not loading:
        return {}
    ldd = which("ldd")
    if ldd is None:
        raise Refused("making an image needs the program `ldd`", hint="apt-get install libc-bin")
    folders = {folder: root for root in roots for inside in FOLDERS for folder in root.glob(inside)}
    places = os.pathsep.join(str(folder) for folder in folders)
    ran = subprocess.run(  # noqa: S603
        [ldd, *map(str, loading)], capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": places}
    )
    if "not found" in ran.stdout:
        raise Refused(f"{loading[0]} lacks a library on this machine", saw=ran.stdout.strip())
    found = [Path(path) for path in LIBRARY.findall(ran.stdout)]
    inside = {path: path.relative_to(folders[path.parent]) if path.parent in folders else path for path in found}
    return {f"/{str(place).lstrip('/')}": path for path, place in inside.items()}


def archive(image: Image) -> bytes:
    """The image in the format of `docker save`."""
    text, layer, digest = content(image)
    config_name, layer_name = f"{hashlib.sha256(text).hexdigest()}.json", f"{digest}/layer.tar"
    manifest = [{"Config": config_name, "RepoTags": [image.name], "Layers": [layer_name]}]
    plain = {config_name: text, layer_name: layer, "manifest.json": json.dumps(manifest).encode()}
    return _tar(_plain(plain))


def layout(image: Image) -> bytes:
    """The image as an archive of an OCI layout, with the manifest of `docker save` beside it for `docker load`."""
    text, layer, digest = content(image)
    config = _descriptor("application/vnd.oci.image.config.v1+json", text)
    blob = _descriptor("application/vnd.oci.image.layer.v1.tar", layer)
    manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [blob]}).encode()
    tag = image.name.rpartition(":")[2]
    named = {"io.containerd.image.name": normalise(image.name), "org.opencontainers.image.ref.name": tag}
    index = {"schemaVersion": 2, "manifests": [{**_descriptor(MANIFEST, manifest), "annotations": named}]}
    blobs = {f"blobs/sha256/{hashlib.sha256(each).hexdigest()}": each for each in (text, manifest)}
    blobs[f"blobs/sha256/{digest}"] = layer
    saved = [{"Config": _blob(config), "RepoTags": [image.name], "Layers": [_blob(blob)]}]
    documents = {"oci-layout": {"imageLayoutVersion": "1.0.0"}, "index.json": index, "manifest.json": saved}
    return _tar(_plain({**blobs, **{name: json.dumps(tree).encode() for name, tree in documents.items()}}))


def _descriptor(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}


def _blob(descriptor: Mapping[str, Any]) -> str:
    return f"blobs/{descriptor['digest'].replace(':', '/')}"


def content(image: Image) -> tuple[bytes, bytes, str]:
    """Its configuration, its only layer, and the digest of that."""
    programs = {path: file.read_bytes() for path, file in image.files.items()}
    programs |= {path: text.encode() for path, text in image.texts.items()}
    if image.bytecode:
        programs |= compiled(programs)
    files = {path: (data, image.modes.get(path, 0o755)) for path, data in programs.items()}
    layer = _tar({**files, **_plain(RESOLVER)}, image.folders, image.links)
    digest = hashlib.sha256(layer).hexdigest()
    config: dict[str, Any] = {
        "architecture": ARCHITECTURES.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "config": {
            "Entrypoint": list(image.entry),
            "Cmd": list(image.command),
            "Env": [f"PATH={PROGRAMS}:/usr/bin:/bin"],
            "WorkingDir": "/",
            **({"User": image.user} if image.user else {}),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    return json.dumps(config, sort_keys=True).encode(), layer, digest


def _plain(texts: Mapping[str, bytes]) -> dict[str, tuple[bytes, int]]:
    return {path: (data, 0o644) for path, data in texts.items()}


def _tar(
    files: Mapping[str, tuple[bytes, int]],
    folders: Mapping[str, int] | None = None,
    links: Mapping[str, str] | None = None,
) -> bytes:
    """A reproducible tar: fixed owner, time and order. Files are given by path, with their modes."""
    content = {path.lstrip("/"): file for path, file in files.items()}
    targets = {path.lstrip("/"): target for path, target in (links or {}).items()}
    modes = {path.strip("/"): mode for path, mode in (folders or {}).items()}
    places = {
        str(parent) for path in (*content, *targets, *modes) for parent in Path(path).parents if str(parent) != "."
    }
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in sorted(places | modes.keys()):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, modes.get(folder, 0o755)
            tar.addfile(entry)
        for path, (data, mode) in sorted(content.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
        for path, target in sorted(targets.items()):
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode, entry.linkname = tarfile.SYMTYPE, 0o777, target
            tar.addfile(entry)
    return whole.getvalue()


def keep(image: Image, folder: Path) -> Path:
    """The cached archive of an image, built if missing; its name has a hash of the image and of its files' stats."""
    stamps = [(inside, str(file), file.stat().st_size, file.stat().st_mtime_ns) for inside, file in image.files.items()]
    described = {**asdict(image), "files": sorted(stamps)}
    key = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:12]
    place = folder / f"{re.sub('[^A-Za-z0-9.]+', '_', image.name)}-{key}.tar"
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(place, archive(image))  # a truncated one would spoil every later cluster
    return place
