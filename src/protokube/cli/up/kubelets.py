"""Whether hosts run a real kubelet: by default where it can run; an existing cluster keeps what it has.

What stands against it is found before anything is written. Who asked for kubelets is refused then; who did not gets the
reason in one line, and the built-in runner of static pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from protokube.errors import ProtokubeError, Refused

if TYPE_CHECKING:
    from protokube.cli.shared.progress import Progress
    from protokube.cli.up.existing import ClusterShape
    from protokube.cli.up.kubernetes import Kubernetes
    from protokube.config.complete import Config


@dataclass(frozen=True, slots=True)
class Kubelets:
    """The decision."""

    run: bool
    missing: str = ""
    """Why not, if nobody said so; in one line."""

    def __str__(self) -> str:
        if self.run:
            return "kubelets on containerd: hosts are nodes"
        return f"no kubelets, so no nodes{f': {self.missing}' if self.missing else ''}"


def decide(asked: bool | None, kept: bool | None, reason: str) -> Kubelets:
    """From what was asked for, what the cluster has (None: it decides now), and what stands against it. Pure."""
    if asked is False:
        return Kubelets(False)
    if asked is None and kept is not None:
        return Kubelets(kept)
    if not reason:
        return Kubelets(True)
    if asked:
        raise Refused("hosts cannot run a kubelet here", saw=reason, hint="--no-kubelet: static pods, and no nodes")
    return Kubelets(False, reason)


def refuse_early(asked: bool | None, before: ClusterShape | None, cluster: str) -> None:
    """Refused if kubelets were asked for and this machine cannot run them: before Kubernetes is downloaded for them."""
    if asked and not (before and before.kubelet):
        decide(asked, None, why_not_on_this_machine(cluster))


def choose_kubelets(
    asked: bool | None, before: ClusterShape | None, kubernetes: Kubernetes, config: Config, cache: Path,
    progress: Progress, *, dry_run: bool,
) -> Kubelets:  # fmt: skip
    """With the programs that kubelets need, other than those of Kubernetes, in the cache."""
    if not kubernetes.version:
        return Kubelets(False)
    kept = before.kubelet if before and before.kubernetes not in ("", "none") else None
    with progress.step("kubelets") as step:
        is_new = asked is not False and (kept is None or (asked and not kept))
        found = decide(asked, kept, why_not(kubernetes, config) if is_new else "")
        if found.run and not dry_run:
            found = with_packages(found, cache, progress, needed=bool(asked or kept))
        step.text = str(found)
    return found


def with_packages(found: Kubelets, cache: Path, progress: Progress, *, needed: bool) -> Kubelets:
    """The same, with the Debian packages in the cache; if they cannot be had and are not needed, no kubelets."""
    from protokube.local.node.packages import obtain_packages

    try:
        obtain_packages(cache, progress)
    except ProtokubeError as why:
        if needed:
            raise
        return Kubelets(False, why.in_one_line())
    return found


def why_not(kubernetes: Kubernetes, config: Config) -> str:
    """Why hosts of a new cluster cannot run a kubelet, as far as nothing has to be fetched to know; "" if they can."""
    from protokube.launch.cloud import images

    if kubernetes.here and "kubelet" not in kubernetes.here.programs:
        return f"{kubernetes.here.folder} has no kubelet"
    if not images(config).sandbox:
        return "the spec has another container runtime than containerd"
    return why_not_on_this_machine(config.name)


def why_not_on_this_machine(cluster: str) -> str:
    """By its control groups, namespaces and file systems."""
    from protokube.local.base.paths import Paths
    from protokube.local.host import cgroup_facts

    return cgroup_facts.why_not(cgroup_facts.observe(Paths.of(cluster).root))
