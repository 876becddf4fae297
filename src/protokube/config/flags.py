"""The flags of each component, by version.

The tables were generated from real binaries of some minor versions. For a version between two tables a flag is taken to
exist only if both neighbours list it, and to be deprecated if either marks it so: rendered flags must be valid on
versions without a table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from protokube.spec.version import Version, parse

COMPONENTS = {
    "kubeAPIServer": "kube-apiserver",
    "kubeControllerManager": "kube-controller-manager",
    "kubeScheduler": "kube-scheduler",
    "kubeProxy": "kube-proxy",
    "kubelet": "kubelet",
}
"""The binary that each section of a spec configures."""
KUBERNETES_TABLES = ("1.20", "1.28", "1.32", "1.34", "1.36", "1.37")
ETCD_TABLES = ("3.4", "3.5", "3.6")


@dataclass(frozen=True, slots=True)
class FlagTable:
    """The flags of one component at one version."""

    component: str
    version: str
    sure: dict[str, dict[str, Any]]
    """Listed by the table of this version, or by both neighbours."""
    perhaps: dict[str, str]
    """Listed by one neighbour only, with the version of that neighbour."""

    def lists(self, flag: str) -> bool:
        return flag in self.sure

    def deprecated(self, flag: str) -> bool:
        return bool(self.sure.get(flag, {}).get("deprecated"))

    def default(self, flag: str) -> Any:
        return self.sure.get(flag, {}).get("default")


@cache
def _read(name: str) -> dict[str, Any]:
    text = resources.files("protokube.config").joinpath("tables", f"{name}.json").read_text("utf-8")
    return dict(json.loads(text))


@cache
def flag_table(component: str, series: Version) -> FlagTable:
    """The flags of a component at a minor version; outside of the tables' range, the oldest or newest table is used."""
    prefix, known = ("etcd-", ETCD_TABLES) if component == "etcd" else ("", KUBERNETES_TABLES)
    versions = {name: parse(name) for name in known}
    below = [name for name, version in versions.items() if version and version <= series] or [known[0]]
    above = [name for name, version in versions.items() if version and version >= series] or [known[-1]]
    low = _read(prefix + below[-1])[component]
    high = _read(prefix + above[0])[component]
    sure = {flag: {**low[flag], **_deprecation(low[flag], high[flag])} for flag in low.keys() & high.keys()}
    perhaps = {flag: below[-1] if flag in low else above[0] for flag in low.keys() ^ high.keys()}
    return FlagTable(component, series.short, sure, perhaps)


def _deprecation(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    return {"deprecated": True} if low.get("deprecated") or high.get("deprecated") else {}
