"""Kubernetes' own releases, from the official place or from mirrors of it.

Every program has its checksum beside it: `/v1.34.1/bin/linux/amd64/kubelet` and `kubelet.sha256`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from protokube.binaries.download import Absent, Unreachable, text
from protokube.binaries.kubernetes import KUBERNETES, PROGRAMS
from protokube.binaries.mirrors import Failed, architecture, checked, digest_at, from_any
from protokube.binaries.product import VERSION
from protokube.binaries.telling import Teller
from protokube.errors import InvalidRequest

OFFICIAL = "https://dl.k8s.io/release"
OTHER_WAYS = (
    "name a folder that holds the programs with --from, or a mirror with --mirror, "
    f"or set {KUBERNETES.chosen}; --build makes it from Go modules, or what Debian has from its source"
)


def download_release(version: str, folder: Path, mirrors: Sequence[str], teller: Teller) -> None:
    """Put all programs of a version into the folder, each with the right checksum."""
    order = [checked(each, OFFICIAL) for each in mirrors or (OFFICIAL,)]
    place = f"v{version}/bin/linux/{architecture(KUBERNETES.name)}"
    for name in PROGRAMS:
        with teller.step(f"{name} {version}"):
            good = _fetch(order, f"{place}/{name}", version, folder / name, teller)
        order.sort(key=lambda mirror: mirror != good)  # whoever answered is asked first from now on


def _fetch(order: Sequence[str], place: str, version: str, target: Path, teller: Teller) -> str:
    try:
        return from_any(order, place, target, lambda mirror: digest_at(f"{mirror}/{place}.sha256"), teller)
    except Failed as why:
        if not why.absent:
            raise why.explained(f"{target.name} {version}", OTHER_WAYS) from why
        message = f"there is no {target.name} of Kubernetes {version}"
        raise InvalidRequest(message, saw=str(why), hint=_nearest(version, order)) from why


def _nearest(version: str, mirrors: Iterable[str]) -> str:
    """The version that was probably meant, as the mirrors know them."""
    series = version.rpartition(".")[0] if "-" not in version else ".".join(version.split(".")[:2])
    for question, answer in ((f"stable-{series}", f"the newest of {series}"), ("stable", "the newest")):
        for mirror in mirrors:
            try:
                newest = text(f"{mirror}/{question}.txt")
            except (Absent, Unreachable):
                continue
            if VERSION.match(newest):
                return f"did you mean {newest.removeprefix('v')}, {answer}?"
    return "check the version"
