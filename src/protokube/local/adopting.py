"""Read the layout of a mounted volume of the original protokube, and write our identity file to it.

The generation record is closed first, then the identity is written. If it is interrupted in between, no new etcd
cluster can be founded and nothing runs on the volume yet; running the command again completes it.
"""

from __future__ import annotations

from pathlib import Path

from protokube.errors import Refused, TryLater
from protokube.host.bounded import bounded
from protokube.host.files import read_or_none, write_atomic
from protokube.members.adopt import Adopt, Layout
from protokube.members.generation import decode, encode
from protokube.members.identity import FILE, Identity, Unreadable
from protokube.members.identity import decode as decode_identity
from protokube.members.identity import encode as encode_identity
from protokube.store import Store, layout

ETCD = Path("var/etcd")
MANIFESTS = Path("k8s.io/manifests")
PATIENCE = 5.0
MOST = 1024 * 1024
"""Bytes; a larger file is not a manifest."""


def read_layout(point: Path) -> Layout:
    """TryLater if the disk does not answer."""
    return bounded(lambda: _read(point), PATIENCE, f"reading {point}")


def _read(point: Path) -> Layout:
    folders = sorted((point / ETCD).glob("data*"))
    databases = [each / "member/snap/db" for each in folders]
    return Layout(
        identity=_identity(point),
        logs={each.name: len(list((each / "member/wal").glob("*.wal"))) for each in folders},
        manifests={each.name: _text(each) for each in sorted((point / MANIFESTS).glob("*.manifest"))},
        database_size=sum(each.stat().st_size for each in databases if each.is_file()),
    )


def _identity(point: Path) -> Identity | Unreadable | None:
    try:
        found = read_or_none(point / FILE)
    except OSError as error:
        return Unreadable(f"{FILE}: {error.strerror}")
    return None if found is None else decode_identity(found)


def _text(file: Path) -> str:
    if file.is_symlink() or not file.is_file() or file.stat().st_size > MOST:
        return ""
    return file.read_bytes().decode(errors="replace")


def carry_out(decision: Adopt, point: Path, store: Store, cluster: str) -> list[str]:
    """Carry out the decision; returns what was changed, one line each."""
    done = []
    path = layout.etcd_generation(cluster, decision.generation.etcd_cluster)
    stored = store.read(path)
    if decode(stored.data) != decision.generation:
        before = decode(stored.data)
        if before is None or before.id != decision.generation.id:
            raise TryLater("the generation record changed meanwhile", hint="run the same command again")
        store.replace(path, encode(decision.generation), stored.version)
        done.append(f"closed the creation of {before.etcd_cluster}: no new etcd cluster is created next to this data")
    if not point.is_dir():
        raise Refused(f"{point} is not there any more", hint="protokube status")
    bounded(
        lambda: write_atomic(point / FILE, encode_identity(decision.identity), 0o644), PATIENCE, f"writing on {point}"
    )
    return [*done, f"wrote {FILE} on {decision.identity.volume}"]
