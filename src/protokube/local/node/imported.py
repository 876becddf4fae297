"""Root directories of containerd with imported images, each built once in the cache; hosts share them by `prepared`.

An import hashes and unpacks every layer: ten seconds of processor time. A root may begin with another one that has most
of its images: it shares their files by hard links, which nobody writes, and has its own databases.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from protokube.images.ctr import Ctr
from protokube.local.node import prepared

FOLDER = "imported"
KEPT = 6
"""Roots in the cache, two for each set of images: without the image of protokube itself, and with it."""
UNUSED = ("io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt")
"""Plugins that would look at, or create, folders of this machine."""
SECONDS_TO_START, SECONDS_TO_IMPORT, SECONDS_TO_STOP = 60.0, 600.0, 30.0


def obtain(
    images: Mapping[str, Path], programs: Path, folder: Path, disabled: Sequence[str], base: Path | None = None
) -> Path:
    """The root with these archives imported, by image name; built unless `folder` has it.

    `programs` is the folder of containerd; `disabled` are plugins that hosts do not use either; `base` is a root to
    begin with. Raises OSError or SubprocessError.
    """
    kept = folder / FOLDER
    target = kept / key(images, programs)
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not prepared.is_whole(target):
            if target.exists():
                target.rename(kept / f".draft-{target.name}")
            for left in kept.glob(".draft-*"):  # by a build that was killed: we hold the lock
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=".draft-", dir=kept) as draft:
                root = Path(draft) / "root"
                if base:
                    prepared.clone(base, root)
                    prepared.detach(root)
                build(root, images, programs, [*disabled, *UNUSED])
                prepared.describe(root, images)
                os.sync()  # a power failure must not leave a root that looks complete, and spoils every later host
                root.rename(target)
        os.utime(target)
        for old in superfluous(kept):
            # Renamed first: whoever links it right now must be able to tell.
            shutil.rmtree(old.rename(kept / f".draft-{old.name}"), ignore_errors=True)
    return target


def key(images: Mapping[str, Path], programs: Path) -> str:
    """Names this content: archives have a hash of theirs in their names."""
    containerd = (programs / "containerd").stat()
    described = {
        "images": {name: archive.name for name, archive in images.items()},
        "containerd": [containerd.st_size, containerd.st_mtime_ns],
    }
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:12]


def superfluous(kept: Path) -> list[Path]:
    """All roots but those used last. Clusters that use another one have links of their own to its files."""
    roots = [each for each in kept.iterdir() if each.is_dir() and not each.name.startswith(".")]
    return sorted(roots, key=lambda each: (each.stat().st_mtime_ns, each.name), reverse=True)[KEPT:]


def build(root: Path, images: Mapping[str, Path], programs: Path, disabled: Sequence[str]) -> None:
    """Import the archives with a containerd of its own, in a mount namespace of its own, which ends with us."""
    with tempfile.TemporaryDirectory(prefix="protokube-") as state:
        address, config = f"{state}/containerd.sock", Path(state, "config.toml")
        config.write_text(
            f"version = 2\nroot = {json.dumps(str(root))}\nstate = {json.dumps(f'{state}/state')}\n"
            f"disabled_plugins = {json.dumps([*disabled])}\n[grpc]\naddress = {json.dumps(address)}\n"
        )
        command = ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", str(programs / "containerd")]
        with (
            Path(state, "log").open("wb") as log,
            subprocess.Popen([*command, "--config", str(config)], stdout=log, stderr=log) as containerd,  # noqa: S603
        ):
            try:
                ctr = Ctr(command=(str(programs / "ctr"),), address=address)
                there = ctr.await_start(SECONDS_TO_START, lambda: containerd.poll() is None)
                for name in sorted(set(images) - there):
                    ctr("images", "import", str(images[name]), seconds=SECONDS_TO_IMPORT)
            finally:
                containerd.terminate()
                try:
                    containerd.wait(SECONDS_TO_STOP)
                finally:
                    containerd.kill()
