"""Instance groups: sizes, zones and subnets, and that the groups match the numbers of masters and nodes."""

from __future__ import annotations

from protokube.config.check.labels import check_labels, check_own_labels, check_taints
from protokube.config.draft import Draft
from protokube.config.groups import machines
from protokube.nearest import near
from protokube.spec.cluster import MOST_MASTERS
from protokube.spec.machines import ROLES
from protokube.spec.parse import GROUPS, Spec


def check_groups(cluster: Draft, root: Draft, spec: Spec) -> None:
    known, zones = cluster.get("subnets"), set(cluster.get("zones"))
    for _, group in root.each(GROUPS):
        _bounds(group)
        _places(group, known, zones)
        if group.get("role") == "Master":
            _one_zone(group)
        check_labels(group)
        check_taints(group)
        if group.at("kubelet.taints") in group.ledger.places:  # otherwise they are inherited, and checked there
            check_taints(group.under("kubelet"))
        if group.at("kubelet.nodeLabels") in group.ledger.places:
            check_own_labels(group.under("kubelet"))
    for name in ("kubelet", "masterKubelet"):
        check_taints(cluster.under(name))
        check_own_labels(cluster.under(name))
    for field, role in (("masters", "Master"), ("nodes", "Node")):
        groups = [each for _, each in root.each(GROUPS) if each.get("role") == role]
        total = sum(machines(each) for each in groups)
        if field in spec.cluster and spec.cluster[field] != total:
            hint = f"leave `{field}` out, or change the groups"
            message = f"is {spec.cluster[field]}, but the groups of role {role} have {total}"
            cluster.ledger.problem(field, message, hint, *(each.path for each in groups))
    masters = [each for _, each in root.each(GROUPS) if each.get("role") == "Master"]
    total = sum(machines(each) for each in masters)
    if not 1 <= total <= MOST_MASTERS:
        message = f"the groups of role Master have {total} machines"
        cluster.ledger.problem(
            GROUPS, message, f"1 to {MOST_MASTERS}", *(each.path for each in masters), "metadata.name"
        )
    if (cluster.get("topology")).get("bastion") is not None and cluster.get("topology")["nodes"] == "public":
        cluster.ledger.warn("topology.bastion", "a bastion is useful only if machines are private")
    _hooks(cluster)
    for _, group in root.each(GROUPS):
        _hooks(group)


def _bounds(group: Draft) -> None:
    least, most = group.get("minSize"), group.get("maxSize")
    if least > most:
        group.ledger.problem(group.at("minSize"), f"{least} is more than maxSize {most}", "", group.at("maxSize"))


def _places(group: Draft, known: dict[str, object], zones: set[str]) -> None:
    for index, name in enumerate(group.get("subnets")):
        if name not in known:
            path, hint = group.at(f"subnets[{index}]"), near(name, known) or f"known are {', '.join(known) or 'none'}"
            group.ledger.problem(path, f"there is no subnet {name!r}", hint)
    for index, zone in enumerate(group.get("zones")):
        if zone not in zones:
            path, hint = group.at(f"zones[{index}]"), near(zone, zones) or f"known are {', '.join(sorted(zones))}"
            group.ledger.problem(path, f"{zone!r} is not a zone of this cluster", hint)


def _one_zone(group: Draft) -> None:
    """An etcd volume cannot follow a machine to another zone."""
    if len(zones := group.get("zones")) > 1:
        message = f"masters of one group are in one zone, not in {', '.join(zones)}: their etcd volumes are in one zone"
        hint = "make a group for each zone; or leave the groups of masters out, and `masters: 3` makes one for each"
        group.ledger.problem(group.at("zones"), message, hint, group.at("subnets"), group.path)


def _hooks(draft: Draft) -> None:
    """Hooks need valid roles, and something to run."""
    for index, hook in enumerate(draft.get("hooks") or []):
        each = Draft(hook, draft.ledger, draft.at(f"hooks[{index}]"))
        if not hook.get("manifest") and not hook.get("execContainer") and not hook.get("disabled"):
            draft.ledger.problem(each.path, "a hook needs a `manifest` or an `execContainer`")
        check_roles(each)


def check_roles(draft: Draft) -> None:
    for index, role in enumerate(draft.get("roles") or []):
        if role not in ROLES:
            hint = near(role, ROLES) or f"known are {', '.join(ROLES)}"
            draft.ledger.problem(draft.at(f"roles[{index}]"), f"{role!r} is not a role", hint)
