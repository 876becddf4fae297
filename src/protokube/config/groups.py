"""Instance groups: the user's, those derived from `masters`, `nodes` and `zones`, and the settings of each."""

from __future__ import annotations

from itertools import count
from string import ascii_lowercase

from protokube.config.draft import Draft, Origin
from protokube.spec.parse import GROUPS
from protokube.spec.version import Version

MACHINES = {
    "aws": {"Master": "t3.medium", "Node": "t3.medium", "Bastion": "t3.micro", "APIServer": "t3.medium"},
    "gce": {"Master": "e2-medium", "Node": "e2-medium", "Bastion": "e2-micro", "APIServer": "e2-medium"},
}
IMAGES = {"aws": "136693071363/debian-12-{arch}", "gce": "debian-cloud/debian-12"}
"""Debian 12: it has Python 3.11, which is all that a machine needs. On AWS: the newest image of this owner and name."""
DEFAULT_ZONES = {"local": ["local"], "metal": ["rack"]}
PLACELESS = ("local", "rack")
"""Default zone names of clouds without zones."""
SIZES = {"Master": 1, "Node": 2, "Bastion": 1, "APIServer": 1}


def machines(group: Draft) -> int:
    """The number of machines of a group: its minimum size; for masters with a minimum of 0, its maximum size."""
    role = group.get("role")
    least = int(group.get("minSize") if group.has("minSize") else SIZES.get(role, 1))
    return int(group.get("maxSize") or 0) if role == "Master" and least == 0 else least


def make_groups(cluster: Draft, groups: Draft, zones: list[str], translated: bool = False) -> None:
    """Add the groups that the user left out: one of size 1 for each master, and `nodes`.

    Users of the original keep groups in separate files, so in a translated spec a group that an etcd member names may
    be missing; in a spec of ours that is an error.
    """
    roles = {each.get("role") for _, each in groups.each(GROUPS)}
    if "Master" not in roles or translated:
        named = [pair for pair in _groups_of_members(cluster) if pair[0] not in (groups.get(GROUPS) or {})]
        ours = [] if named or "Master" in roles else _one_per_master(cluster.get("masters"), zones)
        of = (cluster.at("etcdClusters"),) if named else (cluster.at("masters"), cluster.at("zones"))
        for index, (name, zone) in enumerate([*named, *ours]):
            tree = {"role": "Master", "minSize": 1, "maxSize": 1, "zones": [zone or zones[index % len(zones)]]}
            _add(groups, name, tree, "a group of one machine for each master", of)
        if named and "Master" in roles:
            names = ", ".join(name for name, _ in named)
            message = f"there is no InstanceGroup document for {names}; groups of one machine are used"
            cluster.ledger.warn("etcdClusters", message, "pass all files of the cluster at once")
    if "Node" not in roles and cluster.get("nodes") > 0:
        size = cluster.get("nodes")
        tree = {"role": "Node", "minSize": size, "maxSize": size, "zones": list(zones)}
        _add(groups, "nodes", tree, "one group for all nodes", (cluster.at("nodes"), cluster.at("zones")))
    if "Bastion" not in roles and (cluster.get("topology") or {}).get("bastion") is not None:
        tree = {"role": "Bastion", "minSize": 1, "maxSize": 1, "zones": list(zones)}
        _add(groups, "bastions", tree, "the topology has a bastion", (cluster.at("topology.bastion"),))


def _add(groups: Draft, name: str, tree: dict[str, object], because: str, of: tuple[str, ...]) -> None:
    """Add a group under a name that no other group has."""
    taken = groups.under(GROUPS).tree
    free = name if name not in taken else next(each for n in count(2) if (each := f"{name}-{n}") not in taken)
    taken[free] = tree
    groups.ledger.origins[f"{GROUPS}.{free}"] = Origin(because, of)


def _groups_of_members(cluster: Draft) -> list[tuple[str, str | None]]:
    """The groups that etcd members name, each with the zone in its name, if any."""
    etcd = list((cluster.get("etcdClusters") or {}).values())
    members = (etcd[0].get("members") or {}).values() if etcd else ()
    names = list(dict.fromkeys(each["instanceGroup"] for each in members if "instanceGroup" in each))
    zones: list[str] = cluster.get("zones")
    return [(name, next((zone for zone in zones if zone in name), None)) for name in names]


def _one_per_master(masters: int, zones: list[str]) -> list[tuple[str, str]]:
    """`master-ZONE`, and `master-ZONE-2` for the second in a zone; letters in clouds without zones.

    Names do not change when masters are added: a member is named after its group.
    """
    if len(zones) == 1 and zones[0] in PLACELESS:
        return [(f"master-{letter}", zones[0]) for letter in ascii_lowercase[:masters]]
    chosen = [(zones[index % len(zones)], index // len(zones) + 1) for index in range(masters)]
    return [(f"master-{zone}" if number == 1 else f"master-{zone}-{number}", zone) for zone, number in chosen]


def complete_group(group: Draft, cluster: Draft, cloud: str, version: Version, has_nodes: bool) -> None:
    """Set everything of one group except its kubelet."""
    role = group.get("role")
    subnets: dict[str, dict[str, object]] = cluster.get("subnets")
    _places(group, cluster, subnets, role)
    size = SIZES.get(role, 1)
    group.decide("minSize", size, f"the usual size for {role}", group.at("role"))
    group.decide("maxSize", group.get("minSize"), "a fixed size", group.at("minSize"))
    if cloud in MACHINES:
        of = (cluster.at("cloud"), group.at("role"))
        group.decide("machineType", MACHINES[cloud].get(role), "a small machine that is enough to start with", *of)
    if cloud in IMAGES:
        arch = "arm64" if _is_arm(str(group.get("machineType"))) else "amd64"
        of = (cluster.at("cloud"), group.at("machineType"))
        group.decide("image", IMAGES[cloud].format(arch=arch), "Debian 12, newest build", *of)
    because = "the label that other tools use for the role"
    group.decide("nodeLabels", {}, because, group.at("role"))
    for label, value in role_labels(role, version).items():  # in addition to the user's own labels
        group.under("nodeLabels").decide(label, value, because, group.at("role"))
    taints = [f"{role_key(version)}:NoSchedule"] if role == "Master" and has_nodes else []
    because = "masters run no other pods if there are nodes" if taints else "pods may run here"
    group.decide("taints", taints, because, group.at("role"), cluster.at("nodes"))


def _places(group: Draft, cluster: Draft, subnets: dict[str, dict[str, object]], role: str) -> None:
    """Zones from subnets or subnets from zones, whichever the user gave."""
    if group.has("subnets") and not group.has("zones"):
        mine = [subnets[name] for name in group.get("subnets") if name in subnets]
        regional = any("region" in each for each in mine)
        zones = cluster.get("zones") if regional else [each["zone"] for each in mine if "zone" in each]
        group.decide("zones", list(dict.fromkeys(zones)), "the zones of its subnets", group.at("subnets"))
    group.decide("zones", list(cluster.get("zones")), "all zones of the cluster", cluster.at("zones"))
    around = {name: each for name, each in subnets.items() if _is_near(each, group.get("zones"))}
    near = [name for name, each in around.items() if _serves(each, role)]
    if role == "Bastion":
        near = near or list(around)
    group.decide("subnets", near, "the subnets of its zones", group.at("zones"), cluster.at("subnets"))


def _is_near(subnet: dict[str, object], zones: list[str]) -> bool:
    return subnet.get("zone") in zones or ("zone" not in subnet and "region" in subnet)


def _serves(subnet: dict[str, object], role: str) -> bool:
    """Utility subnets are for bastions, which are reachable from outside; all other machines use the other subnets."""
    return subnet.get("type") != ("Private" if role == "Bastion" else "Utility")


def _is_arm(machine: str) -> bool:
    """AWS marks its ARM machines by a `g` after the generation: m7g.large, t4g.small."""
    family = machine.partition(".")[0]
    return family == "a1" or "g" in family[2:]


def role_key(version: Version) -> str:
    """`master` became `control-plane` in 1.24, when the old taint was dropped."""
    return "node-role.kubernetes.io/" + ("control-plane" if version >= (1, 24) else "master")


def role_labels(role: str, version: Version) -> dict[str, str]:
    """The role labels of a node; kubelet may not set these itself, the agent does."""
    if role == "Master":
        labels = {"node-role.kubernetes.io/master": ""} if version < (1, 24) else {}
        return labels | ({"node-role.kubernetes.io/control-plane": ""} if version >= (1, 20) else {})
    return {"Node": {"node-role.kubernetes.io/node": ""}, "APIServer": {"node-role.kubernetes.io/api-server": ""}}.get(
        role, {}
    )
