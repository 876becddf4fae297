"""The places that official releases are downloaded from, on loopback: they serve what a cache holds, with checksums."""

from __future__ import annotations

import hashlib
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from protokube.binaries.archives import COREDNS_ARCHIVES, ETCD_ARCHIVES, Archives
from protokube.binaries.mirrors import architecture
from protokube.binaries.product import Release
from protokube.spec.version import parse


def put_kubernetes(folder: Path, found: Release) -> None:
    """As dl.k8s.io has it: a checksum beside each program, and the newest version of the series."""
    place = folder / f"v{found.version}/bin/linux/{architecture('Kubernetes')}"
    place.mkdir(parents=True)
    for name, program in found.programs.items():
        (place / name).symlink_to(program)
        (place / f"{name}.sha256").write_text(_digest(program))
    version = parse(found.version)
    assert version is not None
    (folder / f"stable-{version.short}.txt").write_text(f"v{found.version}")


def put_archive(folder: Path, found: Release, kind: Archives) -> None:
    """One archive, and a file with its checksum. Not compressed, which takes long and which no reader minds."""
    machine = architecture(kind.product.name)
    archive = folder / kind.archive(found.version, machine)
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w") as tar:
        for name, program in found.programs.items():
            tar.add(program, f"{kind.inside(found.version, machine)}{name}")
    (folder / kind.sums(found.version, machine)).write_text(f"{_digest(archive)}  {archive.name}\n")


def put_all(folder: Path, kubernetes: Release, etcd: Release, coredns: Release) -> None:
    """Each below a folder of its name."""
    put_kubernetes(folder / "kubernetes", kubernetes)
    put_archive(folder / "etcd", etcd, ETCD_ARCHIVES)
    put_archive(folder / "coredns", coredns, COREDNS_ARCHIVES)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Tests look at what arrived."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
