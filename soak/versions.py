"""The control plane and the kubelet tests on each version of Kubernetes that we support, oldest first."""

from __future__ import annotations

from protokube.binaries.etcd import ETCD
from protokube.binaries.kubernetes import KUBERNETES
from protokube.binaries.obtain import Way, obtain
from protokube.binaries.product import CACHE
from protokube.cli.shared.progress import Progress
from protokube.config.etcd_versions import etcd_for
from protokube.errors import ProtokubeError
from protokube.spec.version import DEFAULT, parse
from soak.budget import Budget, Outcome, Section, say
from soak.suites import pytest

VERSIONS = ("1.20.2", "1.28.15", "1.32.2", "1.34.10")
"""The newest one is what `make e2e` runs on. Of 1.32 the one that module proxies serve all modules of."""
FILES = ("tests/e2e/test_control_plane.py", "tests/e2e/test_kubelet.py")
BUILT_ETCD = {"3.5": "3.5.35"}
"""Built instead of the one that the configuration names, which the checksum database does not know all of."""


def get(version: str) -> str:
    """Have a version and an etcd for it; the folder of its programs."""
    named = etcd_for(parse(version) or DEFAULT)
    etcd = BUILT_ETCD.get(named.rpartition(".")[0], named)
    if not etcd.startswith("3.4."):  # that one is Debian's
        obtain(ETCD, etcd, CACHE, Way(build=True), Progress())
    return str(obtain(KUBERNETES, version, CACHE, Way(build=True), Progress()).folder)


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
