"""What holds for every spec: the user's word stands, the result is stable, and every value says where it is from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from builders.config import EXAMPLES, FILE, ZONES, a_group, completed, origin, problems, read_back, written
from builders.examples import examples
from protokube.config.complete import Config, complete
from protokube.config.diff import differences
from protokube.config.network import pods_of, services_of
from protokube.config.typed import typed
from protokube.config.why import flatten, sentence, why
from protokube.errors import InvalidSpec
from protokube.spec.decode import Tree
from protokube.spec.fields import Declared, declared, quantity
from protokube.spec.parse import parse
from unit.config.specs import COMPONENTS, FORMS, MASTERS, Component, Sample, any_specs, sample_values, specs, takes

pytestmark = pytest.mark.usefixtures("unmeasured")

NOTHING = Sample(
    "1.36",
    {
        "cloud": "aws",
        "zones": ZONES["aws"],
        "dnsZone": "",
        "additionalSans": [],
        "sshAccess": [],
        "kubernetesApiAccess": [],
        "encryptionConfig": False,
        "disableSubnetTags": False,
        "configBase": "",
        "keyStore": "",
        "egressProxy": {},
        "cloudLabels": {"empty": ""},
        "topology": {"dns": {}},
        "dnsController": {"enabled": False},
        "containerd": {"address": "", "skipInstall": False},
        "clusterDNS": {"replicas": 0, "image": ""},
        "kubeAPIServer": {
            "allowPrivileged": False,
            "auditLogPath": "",
            "enableAdmissionPlugins": [],
            "logLevel": 0,
            "serviceAccountIssuer": "",
            "etcdServersOverrides": [],
            "cpuRequest": "0",
            "requestTimeout": "0",
        },
        "kubeControllerManager": {
            "allocateNodeCIDRs": False,
            "useServiceAccountCredentials": False,
            "terminatedPodGCThreshold": 0,
            "unhealthyZoneThreshold": 0.0,
            "controllers": [],
            "clusterName": "",
            "leaderElection": {"leaderElect": False, "leaderElectRetryPeriod": "0s"},
        },
        "kubeScheduler": {"percentageOfNodesToScore": 0, "kubeAPIQPS": "0", "kubeAPIBurst": 0, "profiles": []},
        "kubeProxy": {"conntrackMaxPerCore": 0, "proxyMode": "", "metricsBindAddress": "", "ipvsStrictARP": False},
        "kubelet": {
            "maxPods": 0,
            "registerNode": False,
            "anonymousAuth": True,
            "evictionHard": "",
            "podManifestPath": "",
            "kubeReserved": {},
            "cpuCFSQuota": False,
            "memoryThrottlingFactor": 0.0,
        },
        "masterKubelet": {"maxPods": 0, "failSwapOn": False, "hairpinMode": ""},
        "etcdClusters": {
            "main": {
                "quotaBackendBytes": 0,
                "replaceLostVolumes": False,
                "token": "",
                "logLevel": "",
                "members": {name: {"encryptedVolume": False, "volumeType": "", "kmsKeyId": ""} for name in "abc"},
            }
        },
    },
    {
        "pool": {
            "role": "Node",
            "minSize": 0,
            "maxSize": 0,
            "machineType": "",
            "image": "",
            "nodeLabels": {"empty": ""},
            "taints": [],
            "associatePublicIp": False,
            "kubelet": {"maxPods": 0, "rotateCertificates": False, "clusterDNS": "", "nodeIP": ""},
        }
    },
)
"""Zero, false and empty wherever they are allowed."""

slow = examples(25, derandomize=True, suppress_health_check=list(HealthCheck))
quick = examples(70, slow)


def at(config: Config, path: str, tree: Any = None) -> Any:
    """The value at a path of the complete configuration; keys may have dots in them."""
    whole: Any = {**config.cluster, "instanceGroups": config.groups} if tree is None else tree
    if not path:
        return whole
    for name in sorted(whole, key=len, reverse=True):
        if path == name or path.startswith(f"{name}."):
            return at(config, path[len(name) + 1 :], whole[name])
    raise LookupError(path)


@given(specs())
@example(NOTHING)
@quick
def test_whatever_the_user_says_stands_as_it_was_said(sample: Sample) -> None:
    config = complete(sample.spec)

    for path, value in sample_values(sample):
        found = at(config, path)
        assert type(found) is type(value), path
        assert found == value or value == {}, path  # what is left out of a mapping may be decided


def settings_of(component: Component, tree: Tree) -> Iterator[tuple[Declared, Any]]:
    """Every setting that was written for a component, including nested ones."""
    for name, value in tree.items():
        rule = declared(component.schema)[name]
        if is_dataclass(rule.type):
            inner = declared(rule.type)  # type: ignore[arg-type]  # a schema class
            yield from ((inner[each], sample) for each, sample in value.items())
        elif rule.flag or rule.file:
            yield rule, value


def as_entry(rule: Declared, value: Any) -> Any:
    """What a file holds for a value, computed independently of the code."""
    if rule.form == "gates":
        return {name: text == "true" for name, text in value.items()}
    if rule.form == "taints":
        parts = ((text.partition(":")[0].partition("="), text.partition(":")[2]) for text in value)
        return [{"key": k, **({"value": v} if v else {}), "effect": effect} for (k, _, v), effect in parts]
    return FORMS[rule.form][value] if rule.form else value


def as_flag(rule: Declared, value: Any) -> Any:
    if isinstance(value, list):
        return value if rule.repeat else ",".join(str(each) for each in value)
    if isinstance(value, dict):
        return ",".join(f"{key}={each}" for key, each in sorted(value.items()))
    numbers = {"0": 0, "1": 1, "100m": 0.1, "1.5": 1.5, "2k": 2000, "512Mi": 2**29}
    return numbers[value] if rule.check is quantity else value


def carries(form: Tree, component: Component, rule: Declared, value: Any, version: str) -> None:
    """The rendered form of a component has the values that were written."""
    if takes(component, rule, version) == "file":
        (content,) = form["files"].values()
        for part in rule.file.split("."):
            content = content[part]
        assert content == as_entry(rule, value), rule.name
    else:
        assert form["flags"][rule.flag] == as_flag(rule, value), rule.name


@given(specs())
@example(NOTHING)
@quick
def test_what_is_said_of_a_component_reaches_its_flags_or_its_file(sample: Sample) -> None:
    config = complete(sample.spec)

    for name in ("kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy"):
        tree = sample.cluster.get(name, {})
        if name == "kubeProxy" and not config.cluster["kubeProxy"]["enabled"]:
            continue
        for rule, value in settings_of(COMPONENTS[name], tree):
            if rule.name == "serviceAccountIssuer" and tree.get("additionalServiceAccountIssuers"):
                continue  # one of several then
            carries(config.rendered[""][name], COMPONENTS[name], rule, value, sample.version)


@given(specs())
@example(NOTHING)
@quick
def test_what_is_said_of_kubelets_reaches_each_kubelet_that_is_told_nothing_else(sample: Sample) -> None:
    config = complete(sample.spec)
    nodes = {name: tree.get("kubelet", {}) for name, tree in sample.groups.items()} or {"nodes": {}}
    layers: list[tuple[str, Tree, list[str]]] = [(name, own, ["kubelet"]) for name, own in nodes.items()]
    layers += [(name, {}, ["kubelet", "masterKubelet"]) for name in MASTERS]

    for group, own, names in layers:
        layered: Tree = {}
        for layer in names:
            layered |= sample.cluster.get(layer, {})
        layered |= own
        for rule, value in settings_of(COMPONENTS["kubelet"], layered):
            if rule.name in ("taints", "nodeLabels"):
                continue  # those of the group join them; see test_machines
            carries(config.rendered[group]["kubelet"], COMPONENTS["kubelet"], rule, value, sample.version)


@given(specs())
@example(NOTHING)
@slow
def test_completing_what_is_complete_changes_nothing(sample: Sample) -> None:
    config = complete(sample.spec)
    text = written(config)

    for form in (text, written(config, "json")):
        again = read_back(form)
        assert written(again) == text
        assert {each.message for each in again.warnings} <= {each.message for each in config.warnings}


@given(specs())
@example(NOTHING)
@slow
def test_the_same_spec_gives_the_same_bytes_and_leaves_nothing_undecided(sample: Sample) -> None:
    first, second = complete(sample.spec), complete(sample.spec)

    assert written(first) == written(second)
    assert typed(first) == typed(second)


@st.composite
def places(draw: st.DrawFn) -> tuple[Tree, int]:
    """A cloud, some of its zones, and how many masters and nodes."""
    cloud = draw(st.sampled_from(["aws", "gce", "local", "metal"]))
    names = {"aws": "eu-west-1{}", "gce": "europe-west4-{}"}.get(cloud, "rack-{}")
    letters = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True))
    masters = draw(st.integers(1, 9))
    sample: Tree = {"cloud": cloud, "masters": masters, "nodes": draw(st.integers(0, 40))}
    if cloud in ("aws", "gce") or draw(st.booleans()):
        sample["zones"] = [names.format(letter) for letter in letters]
    if draw(st.booleans()):
        sample["topology"] = {"masters": draw(st.sampled_from(["public", "private"])), "nodes": "private"}
    return sample, masters


@given(places())
@quick
def test_any_odd_number_of_masters_in_any_zones_of_any_cloud_makes_a_cluster(drawn: tuple[Tree, int]) -> None:
    sample, masters = drawn
    if masters % 2 == 0:
        assert "etcdClusters.main.members" in problems(**sample)
        return
    config = completed(**sample)
    groups = {name: each for name, each in config.groups.items() if each["role"] == "Master"}

    assert len(groups) == masters
    for etcd in config.cluster["etcdClusters"].values():
        members = etcd["members"]
        assert sorted(each["instanceGroup"] for each in members.values()) == sorted(groups)
        assert all(each["zone"] in groups[each["instanceGroup"]]["zones"] for each in members.values())
    check_addresses(config)
    taken = [each["zones"][0] for each in groups.values()]
    spread = [taken.count(zone) for zone in config.cluster["zones"]]
    assert max(spread) - min(spread) <= 1


def check_addresses(config: Config) -> None:
    """Subnets and the parts inside lie in their wholes and apart from each other."""
    cluster = config.cluster
    subnets = [IPv4Network(each["cidr"]) for each in cluster["subnets"].values() if "cidr" in each]
    assert all(part.subnet_of(IPv4Network(cluster["networkCIDR"])) for part in subnets)
    assert not any(one.overlaps(other) for index, one in enumerate(subnets) for other in subnets[:index])
    if cluster["cloud"] == "aws":
        assert len(subnets) == len(cluster["subnets"])
    whole = IPv4Network(cluster["nonMasqueradeCIDR"])
    pods, services = IPv4Network(cluster["podCIDR"]), IPv4Network(cluster["serviceClusterIPRange"])
    assert pods.subnet_of(whole)
    assert services.subnet_of(whole)
    assert not pods.overlaps(services)
    assert IPv4Address(cluster["clusterDNS"]["serverIP"]) in services


def network_of(address: int, prefix: int) -> IPv4Network:
    return IPv4Network((address >> (32 - prefix) << (32 - prefix), prefix))


@given(st.integers(0, 2**32 - 1), st.integers(0, 31))
@quick
def test_any_range_splits_into_pods_and_services_that_do_not_meet(address: int, prefix: int) -> None:
    whole = network_of(address, prefix)
    pods, services = pods_of(whole), services_of(whole)

    assert pods.subnet_of(whole)
    assert services.subnet_of(whole)
    assert not pods.overlaps(services)
    assert pods.num_addresses * 2 == whole.num_addresses
    assert services.num_addresses <= 2**20
    assert services.network_address == whole.network_address


@given(st.integers(10 << 24, (11 << 24) - 1), st.integers(9, 22), st.integers(11, 26), st.booleans(), st.data())
@quick
def test_any_network_that_is_large_enough_is_split_among_its_subnets(
    address: int, inside: int, prefix: int, private: bool, data: st.DataObject
) -> None:
    machines, whole = network_of((172 << 24) + (address & 0xFFFFFF), prefix), network_of(address, inside)
    topology = {"masters": "private"} if private else {}
    # some subnets have addresses of their own already
    zones = data.draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True))
    taken = data.draw(st.lists(st.integers(0, 7), max_size=3, unique=True))
    eighths = list(machines.subnets(3))
    sample = [{"name": f"us-east-1{zone}"} for zone in zones]
    for each, index in zip(sample, taken, strict=False):
        each["cidr"] = str(eighths[index])
    config = completed(
        zones=[f"us-east-1{zone}" for zone in zones],
        masters=1,
        networkCIDR=str(machines),
        nonMasqueradeCIDR=str(whole),
        topology=topology,
        **({"subnets": sample} if taken else {}),
    )

    check_addresses(config)
    for each in sample:
        if taken and "cidr" in each:
            assert config.cluster["subnets"][each["name"]]["cidr"] == each["cidr"]


def lines_of(text: str, sample: Sample) -> dict[str, int]:
    """The line of every value that was written, read from the YAML itself."""
    found: dict[str, int] = {}
    roots = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    trees = [("", sample.cluster), *((f"instanceGroups.{name}", tree) for name, tree in sample.groups.items())]
    for (path, tree), root in zip(trees, roots, strict=True):
        _lines(path, tree, _child(root, "spec")[1], found)
    return found


def _child(node: Any, name: str) -> tuple[Any, Any]:
    return next((key, value) for key, value in node.value if key.value == name)


def _lines(path: str, tree: Tree, node: Any, found: dict[str, int]) -> None:
    for name, value in tree.items():
        here = f"{path}.{name}" if path else name
        if isinstance(node, yaml.SequenceNode):  # a list of things with a name
            item = next(each for each in node.value if _child(each, "name")[1].value == name)
            line, inner = item.start_mark.line + 1, item
        else:
            key, inner = _child(node, name)
            line = key.start_mark.line + 1
        if isinstance(value, dict) and value:
            _lines(here, value, inner, found)
        else:
            found[here] = line


def explained(config: Config) -> Iterator[tuple[str, str, str]]:
    """Every leaf with the kind of its origin and the one sentence for it; `why` is asked for some of them."""
    values = flatten(config)
    for index, path in enumerate(values):
        text = sentence(config, values, path)
        assert index % 20 or why(config, path) == [text]
        yield path, origin(config, path).kind, text


@given(specs())
@example(NOTHING)
@examples(15, slow)
def test_every_value_says_in_one_sentence_where_it_is_from_and_the_users_name_their_line(sample: Sample) -> None:
    config, lines = complete(sample.spec), lines_of(sample.text, sample)

    for path, kind, text in explained(config):
        assert kind in ("default", "derived", "user"), path
        assert text.startswith(f"{path} is ")
        assert text.endswith(".")
        assert (kind == "user") == (path in lines or path == "metadata.name"), path
        if kind == "user" and path in lines:
            assert text.endswith(f": you set it at {FILE}:{lines[path]}."), path
        if kind == "default":
            assert ": default, " in text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_value_of_every_example_has_an_origin(path: Any) -> None:
    config = complete(parse([(str(path), path.read_text("utf-8"))]))

    for leaf, kind, text in explained(config):
        assert kind in ("default", "derived", "user"), leaf
        assert text.endswith("."), leaf


@given(specs())
@slow
def test_no_configuration_differs_from_itself(sample: Sample) -> None:
    assert list(differences(complete(sample.spec), complete(sample.spec))) == []


@given(specs(), specs())
@slow
def test_two_configurations_differ_exactly_in_the_leaves_that_differ(left: Sample, right: Sample) -> None:
    ours, theirs = complete(left.spec), complete(right.spec)
    by_path = {each.path: each for each in differences(ours, theirs)}
    mine, other = flatten(ours), flatten(theirs)

    missing = object()
    expected = {path for path in {*mine, *other} if mine.get(path, missing) != other.get(path, missing)}
    assert set(by_path) == expected
    for path, each in by_path.items():
        assert (each.left.present, each.right.present) == (path in mine, path in other)
        assert (each.left.value, each.right.value) == (mine.get(path), other.get(path))
        assert bool(each.left.reason) == each.left.present
        assert bool(each.right.reason) == each.right.present


@given(st.lists(st.sampled_from(["pool", "spot", "gpu"]), unique=True, min_size=1), st.permutations(["a", "b", "c"]))
@slow
def test_the_order_in_which_groups_and_members_are_written_does_not_matter(names: list[str], order: list[str]) -> None:
    masters = [a_group(f"master-us-east-1{zone}", "Master", zones=[f"us-east-1{zone}"]) for zone in order]
    groups = [a_group(name, minSize=index) for index, name in enumerate(sorted(names))]

    one, other = completed(*masters, *groups), completed(*reversed(groups), *sorted(masters))

    assert one.groups == other.groups
    for key, etcd in one.cluster["etcdClusters"].items():
        assert etcd == other.cluster["etcdClusters"][key]


@given(any_specs())
@examples(100, slow)
def test_whatever_has_the_right_types_is_completed_or_refused_with_reasons_and_never_breaks_us(sample: Sample) -> None:
    try:
        config = complete(sample.spec)
    except InvalidSpec:
        return
    assert read_back(written(config)).cluster == config.cluster
