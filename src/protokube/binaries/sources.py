"""The products that are built from Go modules, and the linker flags that set their version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from protokube.binaries.coredns import COREDNS
from protokube.binaries.etcd import ETCD
from protokube.binaries.kubernetes import KUBERNETES
from protokube.binaries.product import Product

STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
"""Packages of Kubernetes whose variables hold the version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A product as published Go modules."""

    product: Product
    modules: tuple[str, ...]
    """The required modules; the go.mod of the first one is read."""
    packages: Mapping[str, str]
    """The main package of each program."""
    stamps: Callable[[str, str], Mapping[str, str]]
    """Variables that the linker sets, for a version and a commit; the commit is "" if the proxy does not report it."""
    staging: Callable[[str], str] = lambda _: ""
    """The published version of the release's staging modules, if its go.mod does not have it."""
    tests: frozenset[str] = frozenset()
    """Programs that are compiled test binaries (`go test -c`)."""

    def linker_flags(self, version: str, commit: str) -> str:
        """Strip debug information, and set the version variables."""
        return " ".join(["-s", "-w", *(f"-X={name}={text}" for name, text in self.stamps(version, commit).items())])


def kubernetes_staging(version: str) -> str:
    """v0.36.4 for 1.36.4."""
    major, _, rest = version.partition(".")
    assert major == "1", version
    return f"v0.{rest}"


def kubernetes_stamps(version: str, commit: str) -> dict[str, str]:
    major, minor, _ = version.split(".", 2)
    values = {
        "gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean", "gitCommit": commit,
    }  # fmt: skip
    return {f"{package}.{name}": value for package in STAMPED for name, value in values.items()}


KUBERNETES_SOURCE = Source(
    product=KUBERNETES,
    modules=("k8s.io/kubernetes",),
    packages={name: f"k8s.io/kubernetes/cmd/{name}" for name in KUBERNETES.programs},
    stamps=kubernetes_stamps,
    staging=kubernetes_staging,
)
ETCD_SOURCE = Source(
    product=ETCD,
    modules=tuple(f"go.etcd.io/etcd/{name}/v3" for name in ("server", "etcdctl", "etcdutl")),
    packages={
        "etcd": "go.etcd.io/etcd/server/v3",
        "etcdctl": "go.etcd.io/etcd/etcdctl/v3",
        "etcdutl": "go.etcd.io/etcd/etcdutl/v3",
    },
    stamps=lambda _, commit: {"go.etcd.io/etcd/api/v3/version.GitSHA": commit[:7]} if commit else {},
)
"""For 3.5 and later. The modules that its go.mod replaces by local folders are published under the same version."""
COREDNS_SOURCE = Source(
    product=COREDNS,
    modules=("github.com/coredns/coredns",),
    packages={"coredns": "github.com/coredns/coredns"},
    stamps=lambda _, commit: {"github.com/coredns/coredns/coremain.GitCommit": commit[:7]} if commit else {},
)
SOURCES = {each.product.key: each for each in (KUBERNETES_SOURCE, ETCD_SOURCE, COREDNS_SOURCE)}
