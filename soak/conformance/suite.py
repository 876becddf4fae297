"""The suite, and the programs in its images: built from the Go modules of one Kubernetes release.

They are built by the same wrapper module as Kubernetes' own binaries, so the suite has exactly this version.
Run as a program, it builds the suite of a version into the cache: `python soak/conformance/suite.py 1.36.4`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from protokube.binaries.gomodules import build_from_modules
from protokube.binaries.kubernetes import KUBERNETES
from protokube.binaries.product import CACHE, Product, Release
from protokube.binaries.progress import ProgressReporter
from protokube.binaries.sources import KUBERNETES_SOURCE, Source
from protokube.cli.shared.progress import Progress
from protokube.errors import ProtokubeError

SUMS = Path(__file__).with_name("sums")
KUBERNETES_IMAGES = "k8s.io/kubernetes/test/images"
PACKAGES = {
    "e2e.test": "k8s.io/kubernetes/test/e2e",
    "ginkgo": "github.com/onsi/ginkgo/v2/ginkgo",
    "agnhost": f"{KUBERNETES_IMAGES}/agnhost",
    "nnp": f"{KUBERNETES_IMAGES}/nonewprivs",
    "sample-apiserver": "k8s.io/sample-apiserver",
}
SUITE = Product(
    name="conformance suite",
    key="conformance",
    programs=tuple(PACKAGES),
    needed=tuple(PACKAGES),
    chosen="PROTOKUBE_CONFORMANCE_BIN",
    example=KUBERNETES.example,
    ask_version={},
    answer=KUBERNETES.answer,
)
SUITE_SOURCE = Source(
    product=SUITE,
    modules=KUBERNETES_SOURCE.modules,
    packages=PACKAGES,
    stamps=KUBERNETES_SOURCE.stamps,
    staging=KUBERNETES_SOURCE.staging,
    tests=frozenset({"e2e.test"}),
)


def obtain_suite(version: str, progress: ProgressReporter, cache: Path = CACHE) -> Release:
    """Have the suite of this version in the cache."""
    found = SUITE.find(version, cache)
    return found or build_from_modules(SUITE_SOURCE, version, cache, progress, sums=SUMS)


def main(version: str) -> int:
    try:
        found = obtain_suite(version, Progress())
    except ProtokubeError as why:
        sys.stderr.write(f"error: {why}\n")
        return int(why.exit_code)
    sys.stdout.write(f"{SUITE.name} {found.version} is in {found.folder}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
