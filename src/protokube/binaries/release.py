"""Official releases of Kubernetes, from the official URL or from mirrors.

Every binary has a checksum file next to it: `/v1.34.1/bin/linux/amd64/kubelet` and `kubelet.sha256`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from protokube.binaries.download import Absent, Unreachable, text
from protokube.binaries.kubernetes import KUBERNETES, PROGRAMS
from protokube.binaries.mirrors import Failed, architecture, checked, digest_at, from_any
from protokube.binaries.product import VERSION
from protokube.binaries.progress import ProgressReporter
from protokube.errors import InvalidRequest

OFFICIAL = "https://dl.k8s.io/release"
OTHER_WAYS = (
    "name a folder that holds the programs with --from, or a mirror with --mirror, "
    f"or set {KUBERNETES.chosen}; --build makes it from Go modules, or what Debian has from its source"
)


def download_release(version: str, folder: Path, mirrors: Sequence[str], progress: ProgressReporter) -> None:
    """Download all binaries of a version into the folder and verify their checksums."""
    order = [checked(each, OFFICIAL) for each in mirrors or (OFFICIAL,)]
    place = f"v{version}/bin/linux/{architecture(KUBERNETES.name)}"
    for name in PROGRAMS:
        with progress.step(f"{name} {version}"):
            good = _fetch(order, f"{place}/{name}", version, folder / name, progress)
        order.sort(key=lambda mirror: mirror != good)  # from now on, try the mirror that worked first


def _fetch(order: Sequence[str], place: str, version: str, target: Path, progress: ProgressReporter) -> str:
    try:
        return from_any(order, place, target, lambda mirror: digest_at(f"{mirror}/{place}.sha256"), progress)
    except Failed as why:
        if not why.absent:
            raise why.explained(f"{target.name} {version}", OTHER_WAYS) from why
        message = f"there is no {target.name} of Kubernetes {version}"
        raise InvalidRequest(message, saw=str(why), hint=_nearest(version, order)) from why


def _nearest(version: str, mirrors: Iterable[str]) -> str:
    """Suggest the version that was probably meant, from the mirrors' lists of stable releases."""
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
