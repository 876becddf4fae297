"""Read what lies on a mounted volume of the original, and give it an identity of ours.

The record is written first, then the identity: cut short in between, nothing may be founded any more, and nothing has
been started on the volume yet. Asking again finishes it.
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
"""Bytes of a manifest; what is larger is none."""


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
    """Write what was decided; says what was changed."""
    done = []
    path = layout.etcd_generation(cluster, decision.generation.etcd_cluster)
    stored = store.read(path)
    if decode(stored.data) != decision.generation:
        before = decode(stored.data)
        if before is None or before.id != decision.generation.id:
            raise TryLater("the generation record changed meanwhile", hint="the same command again")
        store.replace(path, encode(decision.generation), stored.version)
        done.append(f"closed the creation of {before.etcd_cluster}: nothing is founded beside this data")
    if not point.is_dir():
        raise Refused(f"{point} is not there any more", hint="protokube status")
    bounded(
        lambda: write_atomic(point / FILE, encode_identity(decision.identity), 0o644), PATIENCE, f"writing on {point}"
    )
    return [*done, f"wrote {FILE} on {decision.identity.volume}"]
