"""Plan the change of a running cluster from one configuration to another: what changes, what is refused, what restarts.

Separate from `change`, which agents import: an agent must not import the packages that complete a configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from protokube.config.complete import Config
from protokube.config.diff import Difference, differences
from protokube.config.fixed import refusals
from protokube.errors import Problem
from protokube.launch.change import API_SERVER, ETCD, fixed_values, in_order, needs_other_machine, restarts
from protokube.launch.changed import changed_values, derived, related
from protokube.launch.machine import MasterConfig
from protokube.launch.versions import StillOld, kubernetes_of, one_way, stages, steps_refused
from protokube.spec.parse import GROUPS

OTHERWISE = "keep the configuration as it is, or create a new cluster"
NO_LESS = "keep it, or create a new cluster; `protokube rollout undo` ends an addition that is unfinished"
COMPACTS = "etcd holds its objects from then on, and its API servers delete old revisions of every key"
OF_KUBERNETES = (
    "kube", "masterKubelet", "containerRuntime", "containerd", "assets", "podCIDR", "nonMasqueradeCIDR",
    "serviceClusterIPRange", "clusterDNS", "networking", "encryptionConfig",
)  # fmt: skip
"""Fields that nothing reads in a cluster without Kubernetes, where they change with defaults of a new release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan:
    """What a change of the configuration means for a running cluster."""

    values: tuple[Difference, ...]
    """Of the cluster and its groups: first what the user changed, then what follows from it. Flags and files only if
    nothing else differs."""
    refused: tuple[Problem, ...]
    restarts: tuple[str, ...]
    """On every master."""
    masters: tuple[str, ...]
    """In the order in which they restart it."""
    following: frozenset[str] = field(default_factory=frozenset)
    """Paths of the values that are derived from other changed values."""
    one_way: tuple[str, ...] = ()
    """What cannot be undone once all masters run it, in sentences."""
    stages: tuple[tuple[str, ...], ...] = ()
    """What restarts in each stage; each is on all masters before the next begins. One stage without other versions."""
    adds: tuple[str, ...] = ()
    """What the cluster did not have before, in words."""
    replacing: tuple[bool, ...] = ()
    """For each stage, whether every machine is replaced by another one in its turn."""

    first_api: bool = False
    """Whether the cluster gets an API that it did not have."""

    @property
    def changes(self) -> bool:
        return bool(self.values or self.refused or self.restarts)

    @property
    def api_away(self) -> bool:
        """Whether the API does not answer during the restarts: no other master serves it meanwhile."""
        needed = [
            each for each in self.restarts if each.startswith(ETCD) or (each == API_SERVER and not self.first_api)
        ]
        return len(self.masters) == 1 and bool(needed)


def plan(
    old: Config,
    new: Config,
    before: MasterConfig,
    after: MasterConfig,
    masters: Sequence[str],
    still: StillOld | None = None,
    present: MasterConfig | None = None,
) -> ChangePlan:
    """Compare two configurations, and what masters get of them; `masters` in the order of their restarts.

    `still`: old versions that are in use yet, to which there is a way back. `present`: what is in force if that is not
    `before`, the last one that all masters ran. Some masters run the one, some the other: all of them must be able to
    take this step, and whatever restarts on any of them is named.
    """
    present = present or before
    found = list(differences(old, new))
    values, completed = changed_values(old, new, found)
    if not before.components:  # nothing has read them yet, so the user's own are new and the others no change
        values = [each for each in values if not _is_of_kubernetes(each.path)]
    steps = tuple(pairwise((before, *stages(before, after))))
    following = completed | derived(old, new, [each.path for each in values])
    return ChangePlan(
        values=tuple(sorted(values, key=lambda each: each.path in following)),
        refused=(*_refused(old, new, before, after, found), *_refused_versions(new, before, present, after, still)),
        restarts=in_order({*restarts(before, after), *restarts(present, after)}),
        masters=tuple(masters),
        following=following,
        one_way=tuple(dict.fromkeys((*one_way(before, after), *one_way(present, after), *_for_good(before, after)))),
        stages=tuple(restarts(*pair) for pair in steps),
        adds=tuple(_added(before, after)),
        first_api=bool(after.components) and not (before.components or present.components),
        replacing=tuple(needs_other_machine(*pair) for pair in steps),
    )


def _added(before: MasterConfig, after: MasterConfig) -> Iterator[str]:
    if after.components and not before.components:
        yield f"Kubernetes {kubernetes_of(after)}"
    if after.kubelet_kubeconfig and not before.kubelet_kubeconfig:
        yield "kubelets, so that masters are nodes which run pods"


def _for_good(before: MasterConfig, after: MasterConfig) -> Iterator[str]:
    if after.components and not before.components:
        yield f"Kubernetes {kubernetes_of(after)}: {COMPACTS}"


def refused_fields(old: Config, new: Config, *, kubernetes: bool) -> list[Problem]:
    """The fields that a running cluster cannot change and that differ, each with its line in the new spec.

    Without `kubernetes`, fields that only Kubernetes reads are left out.
    """
    return _causes(old, new, _refused_paths(old, new, list(differences(old, new)), kubernetes=kubernetes))


def _refused_paths(old: Config, new: Config, found: Sequence[Difference], *, kubernetes: bool) -> list[Problem]:
    refused = refusals(found, _masters(old) | _masters(new))
    return refused if kubernetes else [each for each in refused if not _is_of_kubernetes(each.path)]


def _causes(old: Config, new: Config, refused: list[Problem]) -> list[Problem]:
    """Without those that only follow from others."""
    following = derived(old, new, [each.path for each in refused])
    causes = [each for each in refused if each.path not in following] or refused
    return [replace(each, where=new.ledger.where(each.path)) for each in causes]


def _refused(
    old: Config, new: Config, before: MasterConfig, after: MasterConfig, found: Sequence[Difference]
) -> Iterator[Problem]:
    refused = _refused_paths(old, new, found, kubernetes=bool(before.components and after.components))
    paths = [each.path for each in refused]
    yield from _causes(old, new, refused)
    for value in fixed_values(before, after):
        if not any(related(path, field) for path in paths for field in value.fields):
            yield Problem(path="", message=f"cannot change on a running cluster: {value.words}", hint=OTHERWISE)
    yield from _removed(before, after)


def _removed(before: MasterConfig, after: MasterConfig) -> Iterator[Problem]:
    if before.components and not after.components:
        message = "Kubernetes cannot be removed from a running cluster: nothing would clean up its objects in etcd"
        yield Problem(path="", message=message, hint=NO_LESS)
    elif before.kubelet_kubeconfig and not after.kubelet_kubeconfig:
        message = "kubelets cannot be removed from a running cluster: its nodes run pods, which nothing would move"
        yield Problem(path="", message=message, hint=NO_LESS)


def _refused_versions(
    new: Config, before: MasterConfig, present: MasterConfig, after: MasterConfig, still: StillOld | None
) -> Iterator[Problem]:
    found = {each.path: each for each in steps_refused(present, after, still)}
    for each in steps_refused(before, after, still):
        hint = "not all masters run the revision in force yet: run `up` with its spec first"
        found.setdefault(each.path, replace(each, hint=f"{hint}; {each.hint}" if each.hint else hint))
    for each in found.values():
        yield replace(each, where=new.ledger.where(each.path))


def _is_of_kubernetes(path: str) -> bool:
    return path.startswith(OF_KUBERNETES) or (path.startswith(f"{GROUPS}.") and ".kubelet." in path)


def _masters(config: Config) -> set[str]:
    return {name for name, group in config.groups.items() if group["role"] == "Master"}
