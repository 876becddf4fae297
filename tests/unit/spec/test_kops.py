"""Documents of the original: nothing is lost in silence, and what means the same is written our way."""

from __future__ import annotations

import pytest

from builders.spec import EXAMPLES, a_kops_cluster, a_kops_group, one_problem, problems, read
from protokube.errors import Where
from protokube.spec.cluster import CLOUDS
from protokube.spec.network import PLUGINS
from protokube.spec.parse import parse


def warnings(*texts: str) -> list[str]:
    """The warnings about an accepted document, as `line path: message`."""
    return [f"{each.where.line} {each.path}: {each.message}" for each in read(*texts).warnings if each.where]


# --- clouds and roles


def test_the_cloud_goes_by_our_name() -> None:
    assert read(a_kops_cluster()).cluster["cloud"] == "aws"
    assert read(a_kops_cluster().replace("aws", "baremetal")).cluster["cloud"] == "metal"


@pytest.mark.parametrize("cloud", ["openstack", "digitalocean", "azure", "vsphere", ""])
def test_a_cloud_we_cannot_work_with_is_refused_in_their_words(cloud: str) -> None:
    found = one_problem(a_kops_cluster().replace("aws", f"'{cloud}'"))

    assert found.path == "cloud"
    assert found.message == f"not supported: cloudProvider {cloud!r}; supported are {', '.join(CLOUDS)}"
    assert found.where == Where("spec.yaml", 6)


@pytest.mark.parametrize(("theirs", "ours"), [("Master", "Master"), ("ControlPlane", "Master"), ("Node", "Node")])
def test_a_role_goes_by_our_name(theirs: str, ours: str) -> None:
    assert read(a_kops_cluster(), a_kops_group(f"role: {theirs}")).groups["nodes"]["role"] == ours


@pytest.mark.parametrize("what", ["fileAssets", "hooks"])
def test_the_roles_that_files_and_hooks_are_for_go_by_our_names_too(what: str) -> None:
    listed = f"{what}:\n- name: a\n  roles: [ControlPlane, Node]\n"
    spec = read(a_kops_cluster(listed), a_kops_group(f"role: Node\n{listed}"))

    for holder in (spec.cluster, spec.groups["nodes"]):
        (item,) = holder[what].values() if what == "fileAssets" else holder[what]
        assert item["roles"] == ["Master", "Node"]
    assert spec.warnings == ()


def test_a_group_managed_by_the_cloud_is_what_ours_are() -> None:
    spec = read(a_kops_cluster(), a_kops_group("role: Node\nmanager: CloudGroup"))

    assert (spec.groups["nodes"], spec.warnings) == ({"role": "Node"}, ())


def test_a_group_managed_by_something_else_is_refused() -> None:
    found = one_problem(a_kops_cluster(), a_kops_group("role: Node\nmanager: Karpenter"))

    assert found.path == "instanceGroups.nodes.manager"
    assert "'Karpenter'; use CloudGroup" in found.message


# --- networking


@pytest.mark.parametrize("plugin", [each for each in PLUGINS if each != "kube-router"])
def test_a_network_is_chosen_by_the_key_it_stands_under(plugin: str) -> None:
    assert read(a_kops_cluster(f"networking:\n  {plugin}: {{}}")).cluster["networking"] == {"plugin": plugin}


def test_a_network_may_have_another_name_with_us() -> None:
    assert read(a_kops_cluster("networking: {kuberouter: {}}")).cluster["networking"] == {"plugin": "kube-router"}


def test_what_a_network_is_told_is_kept_for_it() -> None:
    spec = read(a_kops_cluster("networking:\n  calico:\n    mtu: 1400\n    majorVersion: v3\n    ipv4: [a, 1.10]\n"))

    assert spec.cluster["networking"] == {
        "plugin": "calico",
        "options": {"mtu": 1400, "majorVersion": "v3", "ipv4": ["a", "1.10"]},
    }
    assert spec.places["networking.options.mtu"] == Where("spec.yaml", 10)


def test_networks_without_a_value_are_not_chosen() -> None:
    spec = read(a_kops_cluster("networking:\n  calico:\n  kubenet: {}\n  weave: null\n"))

    assert spec.cluster["networking"] == {"plugin": "kubenet"}
    assert "networking" not in read(a_kops_cluster("networking: {}")).cluster
    assert "networking" not in read(a_kops_cluster("networking:")).cluster


def test_two_networks_are_one_too_many() -> None:
    found = one_problem(a_kops_cluster("networking:\n  calico: {}\n  flannel: {}\n"))

    assert (found.path, found.message) == ("networking.flannel", "a second network plugin; calico is set already")
    assert found.where == Where("spec.yaml", 10)


@pytest.mark.parametrize(
    ("theirs", "hint"), [("calicoo", "did you mean `calico`?"), ("mynet", f"known are {', '.join(PLUGINS)}")]
)
def test_a_network_nobody_knows_is_a_problem(theirs: str, hint: str) -> None:
    found = one_problem(a_kops_cluster(f"networking:\n  {theirs}: {{}}"))

    assert (found.path, found.message, found.hint) == (f"networking.{theirs}", "unknown network plugin", hint)


def test_a_network_written_our_way_is_taken_too() -> None:
    assert read(a_kops_cluster("networking: {plugin: cilium}")).cluster["networking"] == {"plugin": "cilium"}


# --- authorization


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("{rbac: {}}", "RBAC"),
        ("{alwaysAllow: {}}", "AlwaysAllow"),
        ("{rbac: {}, alwaysAllow: null}", "RBAC"),
        ("{alwaysAllow: , rbac: {}}", "RBAC"),
        ("RBAC", "RBAC"),
    ],
)
def test_authorization_is_one_word_of_ours(theirs: str, ours: str) -> None:
    spec = read(a_kops_cluster(f"authorization: {theirs}"))

    assert spec.cluster["authorization"] == ours
    assert spec.places["authorization"] == Where("spec.yaml", 8)


@pytest.mark.parametrize("theirs", ["", "{}", "{rbac: }"])
def test_authorization_without_a_choice_is_not_said(theirs: str) -> None:
    assert "authorization" not in read(a_kops_cluster(f"authorization: {theirs}")).cluster


def test_a_way_of_authorization_nobody_knows_is_a_problem_once() -> None:
    found = one_problem(a_kops_cluster("authorization:\n  rback: {}"))

    assert (found.path, found.message, found.hint) == ("authorization.rback", "unknown field", "did you mean `rbac`?")


def test_two_ways_of_authorization_are_one_too_many() -> None:
    found = one_problem(a_kops_cluster("authorization:\n  rbac: {}\n  alwaysAllow: {}"))

    assert (found.path, found.message) == ("authorization.alwaysAllow", "a second mode; RBAC is set already")


# --- DNS


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("{watchIngress: true}", {"watchIngress": True}),
        ("{disable: true}", {"enabled": False}),
        ("{disable: yes}", {"enabled": False}),
        ("{disable: false}", {"enabled": True}),
        ("{disable: , watchNamespace: kube-system}", {"watchNamespace": "kube-system"}),
        ("{}", {}),
    ],
)
def test_the_dns_controller_is_enabled_where_theirs_is_not_disabled(theirs: str, ours: dict[str, object]) -> None:
    assert read(a_kops_cluster(f"externalDns: {theirs}")).cluster["dnsController"] == ours


def test_a_dns_controller_without_a_value_is_not_said() -> None:
    spec = read(a_kops_cluster("externalDns:"))

    assert "dnsController" not in spec.cluster
    assert spec.warnings == ()


@pytest.mark.parametrize("word", ["maybe", "'true'", "1"])
def test_a_dns_controller_neither_disabled_nor_not_is_a_problem(word: str) -> None:
    found = one_problem(a_kops_cluster(f"externalDns: {{disable: {word}}}"))

    assert found.path == "dnsController.enabled"
    assert found.message.startswith("expected true or false, found ")


def test_the_dns_server_of_the_pods_goes_by_our_name() -> None:
    spec = read(a_kops_cluster("kubeDNS:\n  provider: CoreDNS\n  coreDNSImage: coredns:1.9\n  serverIP: 100.64.0.10\n"))

    assert spec.cluster["clusterDNS"] == {"provider": "CoreDNS", "image": "coredns:1.9", "serverIP": "100.64.0.10"}
    assert spec.places["clusterDNS.image"] == Where("spec.yaml", 10)


# --- etcd


ETCD = """
etcdClusters:
- name: main
  etcdMembers:
  - {name: a, instanceGroup: master-us-east-1a, encryptedVolume: true}
"""


def test_etcd_members_go_by_our_name() -> None:
    spec = read(a_kops_cluster(ETCD))

    members = spec.cluster["etcdClusters"]["main"]["members"]
    assert members == {"a": {"instanceGroup": "master-us-east-1a", "encryptedVolume": True}}
    assert spec.places["etcdClusters.main.members.a"] == Where("spec.yaml", 11)


def test_what_etcd_manager_is_told_of_backups_is_said_under_backups() -> None:
    spec = read(a_kops_cluster(f"{ETCD}  manager:\n    backupInterval: 5m\n    backupRetentionDays: 30\n"))

    assert spec.cluster["etcdClusters"]["main"]["backups"] == {"interval": "5m", "retentionDays": 30}
    assert spec.places["etcdClusters.main.backups.interval"] == Where("spec.yaml", 13)
    assert spec.warnings == ()


def test_backups_said_in_both_places_stand_side_by_side() -> None:
    more = "  backups: {backupStore: s3://b/main}\n  manager: {backupInterval: 5m}\n"
    spec = read(a_kops_cluster(ETCD + more))

    assert spec.cluster["etcdClusters"]["main"]["backups"] == {"backupStore": "s3://b/main", "interval": "5m"}


def test_what_only_etcd_manager_knows_is_passed_over_with_a_warning() -> None:
    text = a_kops_cluster(f"{ETCD}  manager:\n    image: etcd-manager:3\n    logLevel: 6\n    env: []\n    bakup: x\n")

    assert warnings(text) == [
        "13 etcdClusters[0].manager.image: ignored: protokube's agent does this itself",
        "14 etcdClusters[0].manager.logLevel: ignored: protokube's agent does this itself",
        "15 etcdClusters[0].manager.env: ignored: settings of etcd-manager, which we do not run",
        "16 etcdClusters.main.manager.bakup: ignored: unknown field",
    ]


def test_an_etcd_manager_without_a_value_is_not_said() -> None:
    assert "backups" not in read(a_kops_cluster(f"{ETCD}  manager:\n")).cluster["etcdClusters"]["main"]


# --- the store


def test_the_config_store_is_where_the_configuration_lies_unless_that_is_said_too() -> None:
    assert read(a_kops_cluster("configStore: s3://a/b")).cluster["configBase"] == "s3://a/b"
    both = read(a_kops_cluster("configStore: s3://a/b\nconfigBase: s3://c/d"))
    assert both.cluster["configBase"] == "s3://c/d"
    assert "configStore" not in both.cluster


# --- what nobody knows


def test_a_field_that_even_the_original_does_not_know_is_a_warning_with_a_near_match() -> None:
    text = a_kops_cluster("kubernetesVersoin: 1.28.0\nkubelet:\n  maxpods: 5\nflavour: sweet\n")

    assert [(each.path, each.hint) for each in read(text).warnings] == [
        ("kubernetesVersoin", "did you mean `kubernetesVersion`?"),
        ("kubelet.maxpods", "did you mean `maxPods`?"),
        ("flavour", ""),
    ]


def test_a_wrong_value_in_their_document_is_a_problem_as_in_ours() -> None:
    found = problems(a_kops_cluster("kubelet: {maxPods: many}\nkubeAPIServer: {requestTimeout: soon}\n"))

    assert [each.path for each in found] == ["kubelet.maxPods", "kubeAPIServer.requestTimeout"]


def test_our_own_documents_know_none_of_their_names() -> None:
    found = problems(a_kops_cluster("kubeDNS: {}").replace("kops.k8s.io/v1alpha2", "protokube.io/v1alpha1"))

    assert [(each.path, each.message) for each in found] == [
        ("cloudProvider", "unknown field"),
        ("kubeDNS", "unknown field"),
    ]


def test_rules_for_kubelets_hold_for_masters_and_groups_alike() -> None:
    body = "kubelet: {eventQPS: 5, allowPrivileged: true}"
    text = a_kops_cluster(f"{body}\nmasterKubelet: {{eventQPS: 6, allowPrivileged: true}}\n")
    spec = read(text, a_kops_group(f"role: Node\n{body}"))

    assert spec.cluster["kubelet"] == {"eventRecordQPS": 5}
    assert spec.cluster["masterKubelet"] == {"eventRecordQPS": 6}
    assert spec.groups["nodes"]["kubelet"] == {"eventRecordQPS": 5}
    assert [each.path for each in spec.warnings] == [
        "kubelet.allowPrivileged",
        "masterKubelet.allowPrivileged",
        "instanceGroups.nodes.kubelet.allowPrivileged",
    ]


@pytest.mark.parametrize("name", ["kops-public", "kops-private"])
def test_documents_as_they_stand_in_many_repositories_are_taken_with_few_words(name: str) -> None:
    spec = parse([(f"{name}.yaml", (EXAMPLES / f"{name}.yaml").read_text())])

    assert spec.translated
    assert [each.path for each in spec.warnings] == ["channel"]
