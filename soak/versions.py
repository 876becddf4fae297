"""The control plane and kubelet tests on each supported version of Kubernetes, oldest first."""

from __future__ import annotations

from protokube.binaries.etcd import ETCD
from protokube.binaries.kubernetes import KUBERNETES
from protokube.binaries.obtain import Origin, obtain
from protokube.binaries.product import CACHE
from protokube.cli.shared.progress import Progress
from protokube.config.etcd_versions import etcd_for
from protokube.errors import ProtokubeError
from protokube.spec.version import DEFAULT, parse
from soak.budget import Budget, Outcome, Section, say
from soak.suites import pytest

VERSIONS = ("1.20.2", "1.28.15", "1.32.2", "1.34.10")
"""Without the newest, on which `make e2e` runs. 1.32.2 is a patch release of which module proxies serve all modules."""
FILES = ("tests/e2e/test_control_plane.py", "tests/e2e/test_kubelet.py")
BUILT_ETCD = {"3.5": "3.5.35"}
"""Built instead of the configured version, for which the checksum database does not have all modules."""


def get(version: str) -> str:
    """Build a version and its etcd into the cache; return the folder of its binaries."""
    named = etcd_for(parse(version) or DEFAULT)
    etcd = BUILT_ETCD.get(named.rpartition(".")[0], named)
    if not etcd.startswith("3.4."):  # that one is Debian's
        obtain(ETCD, etcd, CACHE, Origin(build=True), Progress())
    return str(obtain(KUBERNETES, version, CACHE, Origin(build=True), Progress()).folder)


def run(budget: Budget) -> Outcome:
    outcome = Outcome(len(VERSIONS))
    for version in VERSIONS:
        if budget.over:
            break
        try:
            folder = get(version)
        except ProtokubeError as why:
            outcome.found.append(f"{version} cannot be got: {why}")
            continue
        ended, found = pytest(budget, FILES, **{KUBERNETES.chosen: folder})
        if found:
            outcome.found.append(f"{version}: {found}")
        outcome.done += ended
        say(f"versions: {version}{f': BROKEN: {found}' if found else ': ok' if ended else ': cut short'}")
    return outcome


VERSIONS_SECTION = Section(
    "versions", f"control plane and kubelet on Kubernetes {', '.join(VERSIONS)}, each built first if need be", run
)
