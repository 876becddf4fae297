"""The releases of all projects that machines need, as small files in the layouts of the real ones."""

from __future__ import annotations

from pathlib import Path

from builders.assets import of_files, sha256
from protokube.config.complete import Config
from protokube.launch.published import PROJECTS, Wanted, needed

ARCHIVES = {
    "containerd": {"bin/containerd": b"containerd", "bin/ctr": b"ctr"},
    "cni-plugins": {"./bridge": b"bridge", "./loopback": b"loopback"},
    "crictl": {"crictl": b"crictl"},
}


def content(wanted: Wanted) -> bytes:
    """Of a file of a release."""
    name = wanted.published.asset
    if name in ARCHIVES:
        return of_files(ARCHIVES[name])
    return f"{name} {wanted.version}\n".encode() * 5_000


def put_all(folder: Path, config: Config, machine: str = "amd64") -> list[Wanted]:
    """Each project below a folder of its name, with checksums where the project has them."""
    files = list(needed(config, master=True))
    for each in files:
        place, sums = (of(each.version, machine) for of in (each.published.place, each.published.sums))
        base = folder / each.published.project
        (base / place).parent.mkdir(parents=True, exist_ok=True)
        data = content(each)
        (base / place).write_bytes(data)
        alone = each.published.project == "kubernetes"
        line = sha256(data) if alone else f"{sha256(b'other')}  other\n{sha256(data)}  {place.rpartition('/')[2]}\n"
        (base / sums).write_text(line)
    return files


def options(url: str) -> list[str]:
    """Of a command, for which the server is the official release."""
    return [word for project in PROJECTS for word in ("--release", f"{project}={url}/{project}")]
