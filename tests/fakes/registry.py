"""An image as a registry serves it: pages by their places."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

from protokube.images.build import ARCHITECTURES

DIGEST = "Docker-Content-Digest"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
Page = tuple[str, bytes]
"""Its content type, and what it holds."""


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def image_pages(name: str, tag: str, program: Path) -> dict[str, Page]:
    """An image with one program at its top."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        tar.add(program, program.name)
    layer = whole.getvalue()
    machine = os.uname().machine
    rootfs = {"type": "layers", "diff_ids": [digest(layer)]}
    config = json.dumps({"architecture": ARCHITECTURES.get(machine, machine), "os": "linux", "rootfs": rootfs}).encode()
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": _part(CONFIG, config)}
    text = json.dumps({**manifest, "layers": [_part(LAYER, layer)]}).encode()
    blobs = {f"/v2/{name}/blobs/{digest(data)}": ("application/octet-stream", data) for data in (config, layer)}
    return {**blobs, **{f"/v2/{name}/manifests/{called}": (MANIFEST, text) for called in (tag, digest(text))}}


def _part(kind: str, data: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": digest(data), "size": len(data)}
