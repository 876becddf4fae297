"""A container image in containerd, imported from an asset whose archive stays.

What is hard is what an import leaves open: containerd names the image as the archive does, its CRI plugin takes over
new content of a name only without its own label, and most versions of its client set no label at import. One that is
set afterwards pins the image at once, or with versions before 1.7.10 at the next start of containerd. Without a
containerd that runs, as in the root of an image, the archive and its record are kept: the run of nodeup on the machine
that boots from it imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.images import kept
from protokube.images.archive import judge
from protokube.images.build import ARCHITECTURES
from protokube.images.contents import ImageProblem
from protokube.images.ctr import MANAGED, NAMESPACE
from protokube.images.kept import Kept
from protokube.images.names import BadName, normalise
from protokube.images.reading import read_archive
from protokube.nodeup.assets import cache
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.values import Image

FOLDER = "images"
SECONDS_TO_LOOK, SECONDS_TO_IMPORT = 60.0, 600.0


def look(wanted: Image, machine: Machine) -> tuple[Change, ...]:
    """Whether it is imported, from this archive; nothing is imported for that."""
    asset = cache.named(machine, wanted.asset)
    name = _normal(wanted)
    record = kept.read(_records(machine), name)
    if record is None or record.sha256 != asset.sha256:
        saw = f"sha256 {record.sha256}" if record else "no record"
        return (Change("archive", saw, f"sha256 {asset.sha256}"),)
    if cache.what_is_cached(machine, asset) != asset.sha256:
        return (Change("archive", "missing or damaged", f"sha256 {asset.sha256}"),)
    if not machine.boots:
        return ()
    try:
        row = _row(name, machine)
    except ProtokubeError as why:
        return (Change("imported", why.in_one_line(), wanted.name),)
    if not row or row[2] != record.image:
        return (Change("imported", row[2] if row else "no", record.image or "yes"),)
    if kept.PINNED not in row[-1].split(",") and _version(machine) != record.runtime:
        return (Change("pinned", f"imported by containerd {record.runtime}", _version(machine)),)
    return ()


def apply(wanted: Image, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    """Import it, and keep its archive."""
    asset = cache.named(machine, wanted.asset)
    archive = cache.obtain(machine, asset, say)
    try:
        imported_as = _imported_as(wanted, archive, ARCHITECTURES.get(machine.facts.processor, ""))
        place = cache.place(machine, asset)
        record = Kept(name=_normal(wanted), imported_as=imported_as, archive=place, sha256=asset.sha256)
        if machine.boots:
            record = _import(record, machine, say)
        kept.write(_records(machine), record)
    except OSError as why:
        raise Refused(f"cannot keep the image {wanted.name}", saw=why.strerror or str(why)) from why


def _records(machine: Machine) -> Path:
    return machine.path(f"{machine.cache}/{FOLDER}")


def _normal(wanted: Image) -> str:
    """Its name as containerd and the kubelet have it."""
    try:
        return normalise(wanted.name)
    except BadName as why:
        raise Refused(f"{wanted.asset} cannot be imported as {wanted.name}", saw=str(why)) from why


def _imported_as(wanted: Image, archive: Path, architecture: str) -> str:
    """The name that containerd gives to the image of this archive."""
    try:
        verdict = judge(read_archive(archive), architecture)
        if verdict.problems:
            raise ImageProblem("; ".join(verdict.problems))
    except ImageProblem as why:
        raise Refused(f"{wanted.asset} cannot be imported as {wanted.name}", saw=str(why)) from why
    name = _normal(wanted)
    if name in verdict.names:
        return verdict.names[name]
    if len(verdict.names) != 1:
        raise Refused(f"{wanted.asset} has no image {wanted.name}", saw=", ".join(verdict.names))
    return next(iter(verdict.names.values()))  # releases name the processor, too: kube-proxy-amd64


def _import(record: Kept, machine: Machine, say: Say) -> Kept:
    version = _version(machine)
    pinned = kept.can_pin(version)
    at_import = pinned and "--label" in _ctr(machine, "images", "import", "--help")
    labels = ("--label", kept.PINNED) if at_import else ()
    say(f"{record.name} is imported")
    _ctr(machine, "images", "import", *labels, record.archive, seconds=SECONDS_TO_IMPORT)
    if record.imported_as != record.name:
        _ctr(machine, "images", "tag", "--force", record.imported_as, record.name)
    _ctr(machine, "images", "label", record.name, f"{MANAGED}=")
    if pinned and not at_import:
        _ctr(machine, "images", "label", record.name, kept.PINNED)
    row = _row(record.name, machine)
    if not row:
        raise TryLater(f"{record.name} is gone right after its import", hint="is the disk full?")
    return replace(record, image=row[2], pinned=pinned, runtime=version)


def _row(name: str, machine: Machine) -> list[str]:
    """REF TYPE DIGEST SIZE PLATFORMS LABELS; empty if there is no such image."""
    lines = _ctr(machine, "images", "list", f"name=={name}").splitlines()
    found = [line.split() for line in lines if line.split()[:1] == [name]]
    return found[0] if found and len(found[0]) > 3 else []


def _version(machine: Machine) -> str:
    ran = machine.run(["containerd", "--version"], seconds=SECONDS_TO_LOOK)
    words = ran.output.split()
    return words[2].removeprefix("v") if ran.code == 0 and len(words) > 2 else "of unknown version"


def _ctr(machine: Machine, *words: str, seconds: float = SECONDS_TO_LOOK) -> str:
    ran = machine.run(["ctr", "--namespace", NAMESPACE, *words], seconds=seconds)
    if ran.code:
        saw = ran.output.strip().splitlines()[-1:] or ["no output"]
        raise TryLater(f"containerd does not do `ctr {' '.join(words[:2])}`", saw=saw[0], hint="does containerd run?")
    return ran.output
