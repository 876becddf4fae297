"""Archives of images as their tools write them, small ones."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from protokube.images.contents import Contents
from protokube.images.reading import read_archive

MACHINE, ELSEWHERE = "amd64", "arm64"
OCI = "application/vnd.oci.image"
LAYER = b"a layer, more or less"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def a_config(machine: str = MACHINE, layer: bytes = LAYER) -> dict[str, Any]:
    ids = [f"sha256:{digest(layer)}"]
    return {"os": "linux", "architecture": machine, "rootfs": {"type": "layers", "diff_ids": ids}}


def saved(*names: str, machine: str = MACHINE, layer: bytes = LAYER, **more: Any) -> dict[str, bytes]:
    """As `docker save` wrote it before its version 25."""
    entry = {"Config": "c.json", "RepoTags": list(names) or None, "Layers": ["1/layer.tar"], **more}
    return {
        "c.json": json.dumps(a_config(machine, layer)).encode(),
        "1/layer.tar": layer,
        "manifest.json": json.dumps([entry]).encode(),
    }


class Layout:
    """An OCI layout that grows."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
        self.manifests: list[dict[str, Any]] = []

    def blob(self, data: bytes) -> dict[str, Any]:
        self.files[f"blobs/sha256/{digest(data)}"] = data
        return {"digest": f"sha256:{digest(data)}", "size": len(data)}

    def tree(self, value: Any) -> dict[str, Any]:
        return self.blob(json.dumps(value).encode())

    def image(self, machine: str = MACHINE, layer: bytes = LAYER) -> dict[str, Any]:
        config = {**self.tree(a_config(machine, layer)), "mediaType": f"{OCI}.config.v1+json"}
        layers = [{**self.blob(layer), "mediaType": f"{OCI}.layer.v1.tar"}]
        manifest = self.tree({"schemaVersion": 2, "config": config, "layers": layers})
        return {**manifest, "mediaType": f"{OCI}.manifest.v1+json"}

    def platforms(self, *machines: str, layer: bytes = LAYER) -> dict[str, Any]:
        """One image for several architectures."""
        inner = [
            {**self.image(machine, layer), "platform": {"os": "linux", "architecture": machine}} for machine in machines
        ]
        return {**self.tree({"schemaVersion": 2, "manifests": inner}), "mediaType": f"{OCI}.index.v1+json"}

    def named(self, entry: Mapping[str, Any], **annotations: str) -> Layout:
        self.manifests.append({**entry, "annotations": annotations} if annotations else dict(entry))
        return self

    def all(self) -> dict[str, bytes]:
        return {**self.files, "index.json": json.dumps({"manifests": self.manifests}).encode()}


def packed(files: Mapping[str, bytes], links: Sequence[tuple[str, str]] = ()) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        for name, target in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return whole.getvalue()


def contents(folder: Path, files: Mapping[str, bytes], links: Sequence[tuple[str, str]] = ()) -> Contents:
    """Written, and read again."""
    file = folder / "archive.tar"
    file.write_bytes(packed(files, links))
    return read_archive(file)
