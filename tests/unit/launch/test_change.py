"""Two configurations of a master: what restarts, and what a running cluster cannot change."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import HealthCheck, given

from builders.config import a_group, completed
from builders.examples import examples
from protokube.config.complete import Config, complete
from protokube.config.podranges import PodRange
from protokube.launch.change import fixed, needs_other_machine, restarts
from protokube.launch.derive import from_config, master_kubelets
from protokube.launch.machine import EtcdCluster, FileText, MasterConfig
from unit.config.specs import Sample, specs

slow = examples(20, derandomize=True, suppress_health_check=list(HealthCheck))


def master(config: Config, **options: Any) -> MasterConfig:
    """What a master gets, with its kubelets."""
    return replace(from_config(config, **options), kubelets=master_kubelets(config))


def a_master(*groups: Any, **cluster: Any) -> MasterConfig:
    return master(completed(*groups, **cluster))


def etcd_with(wanted: MasterConfig, **changes: Any) -> MasterConfig:
    """The same with another `main`."""
    main, *others = wanted.etcd
    return replace(wanted, etcd=(replace(main, **changes), *others))


def member_with(etcd: EtcdCluster, **changes: Any) -> dict[str, Any]:
    first, *others = etcd.members
    return {"members": (replace(first, **changes), *others)}


def etcd_clusters(**main: Any) -> dict[str, Any]:
    return {"etcdClusters": [{"name": "main", **main}, {"name": "events"}]}


QUOTA = {"quotaBackendBytes": 2**32}
CHANGES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("etcd quota", etcd_clusters(**QUOTA), ("etcd main",)),
    ("events quota", {"etcdClusters": [{"name": "main"}, {"name": "events", **QUOTA}]}, ("etcd events",)),
    ("metrics port", etcd_clusters(metricsPort=2399), ("etcd main",)),
    ("flag of the API server", {"kubeAPIServer": {"extraFlags": {"livez-grace-period": "30s"}}}, ("kube-apiserver",)),
    ("audit policy", {"kubeAPIServer": {"auditPolicy": {"rules": [{"level": "None"}]}}}, ("kube-apiserver",)),
    ("scheduler", {"kubeScheduler": {"logLevel": 4}}, ("kube-scheduler",)),
    ("controllers", {"kubeControllerManager": {"logLevel": 4}}, ("kube-controller-manager",)),
    ("proxy", {"kubeProxy": {"logLevel": 4}}, ("kube-proxy",)),
    ("dns-controller", {"dnsController": {"watchIngress": True}}, ("dns-controller",)),
    ("no dns-controller", {"dnsController": {"enabled": False}}, ("dns-controller",)),
    ("kubelet", {"kubelet": {"maxPods": 60}}, ("kubelet",)),
    ("maintenance", etcd_clusters(maintenance={"compact": False}), ()),
    ("file that nothing reads", {"fileAssets": [{"name": "motd", "path": "/etc/motd", "content": "hello"}]}, ()),
    ("names of the API", {"additionalSans": ["api.example.org"]}, ()),
    ("lifetime of certificates", {"pki": {"certificateLifetime": "4380h"}}, ()),
    ("two at once", {"kubelet": {"maxPods": 60}, "kubeScheduler": {"logLevel": 4}}, ("kube-scheduler", "kubelet")),
]  # fmt: skip


@pytest.mark.parametrize(("cluster", "expected"), [each[1:] for each in CHANGES], ids=[each[0] for each in CHANGES])
def test_what_reads_a_changed_value_restarts_and_nothing_else(
    cluster: dict[str, Any], expected: tuple[str, ...]
) -> None:
    before, after = a_master(), a_master(**cluster)

    assert restarts(before, after) == restarts(after, before) == expected
    assert fixed(before, after) == fixed(after, before) == ()


def test_a_label_that_only_the_agent_may_set_restarts_nothing() -> None:
    labels = {"node-role.kubernetes.io/special": "yes"}
    before, after = a_master(a_group("nodes")), a_master(a_group("nodes", nodeLabels=labels))

    assert before.node_labels != after.node_labels
    assert restarts(before, after) == ()


def test_a_label_that_the_kubelet_sets_restarts_it() -> None:
    zone: dict[str, Any] = {"role": "Master", "zones": ["us-east-1a"]}
    before, after = a_master(a_group("masters", **zone)), a_master(a_group("masters", **zone, nodeLabels={"rack": "7"}))
    assert restarts(before, after) == ("kubelet",)


def token_file(content: str, path: str = "/srv/kubernetes/assets/tokens", **more: Any) -> dict[str, Any]:
    return {"fileAssets": [{"name": "tokens", "path": path, "content": content, **more}]}


def test_a_component_restarts_when_a_file_changes_that_one_of_its_flags_names() -> None:
    flags = {"kubeAPIServer": {"tokenAuthFile": "/srv/kubernetes/assets/tokens"}}
    before = a_master(**flags, **token_file("a,b,c"))

    assert restarts(before, a_master(**flags, **token_file("a,b,d"))) == ("kube-apiserver",)
    assert restarts(before, a_master(**flags)) == ("kube-apiserver",)
    assert restarts(before, a_master(**flags, **token_file("a,b,c", mode="0400"))) == ()
    assert restarts(before, a_master(**flags, **token_file("a,b,c", roles=["Node"]))) == ("kube-apiserver",)


def test_a_component_restarts_when_only_one_group_of_masters_gets_another_file() -> None:
    wanted = replace(a_master(), files={"/srv/x": FileText(text="YQ==", mode=0o440)})
    api = next(each for each in wanted.components if each.name == "kube-apiserver")
    reading = replace(wanted, components=(replace(api, flags={**api.flags, "cloud-config": "/srv/x"}),))
    other = {"master-us-east-1a": {"/srv/x": FileText(text="Yg==", mode=0o440)}}

    assert restarts(reading, replace(reading, group_files=other)) == ("kube-apiserver",)
    assert restarts(wanted, replace(wanted, group_files=other)) == ()


def test_a_component_restarts_when_a_file_in_a_directory_changes_that_a_flag_names() -> None:
    wanted = a_master()
    api = next(each for each in wanted.components if each.name == "kube-apiserver")
    reading = replace(wanted, components=(replace(api, flags={**api.flags, "cert-dir": "/srv/certs"}),))
    inside = replace(reading, files={"/srv/certs/a.crt": FileText(text="YQ==", mode=0o440)})
    beside = replace(reading, files={"/srv/certs-old/a.crt": FileText(text="YQ==", mode=0o440)})

    assert restarts(reading, inside) == ("kube-apiserver",)
    assert restarts(reading, beside) == ()


def test_another_secret_or_user_in_a_file_restarts_its_reader() -> None:
    wanted = a_master(encryptionConfig=True)
    (path,) = wanted.secret_files
    manager = next(path for path, user in wanted.kubeconfigs.items() if user == "kube-controller-manager")

    assert restarts(wanted, replace(wanted, secret_files={path: "other"})) == ("kube-apiserver",)
    changed = replace(wanted, kubeconfigs={**wanted.kubeconfigs, manager: "somebody"})
    assert restarts(wanted, changed) == ("kube-controller-manager",)


def test_another_api_url_restarts_the_kubelet_and_kube_proxy_which_use_it() -> None:
    wanted = a_master()

    assert restarts(wanted, replace(wanted, kubelet_api="https://127.0.0.1:7443")) == ("kube-proxy", "kubelet")
    node = replace(wanted, kubelet_kubeconfig="/one")
    assert restarts(node, replace(wanted, kubelet_kubeconfig="/other")) == ("kubelet",)


def test_a_kubelet_that_is_added_needs_another_machine_on_which_everything_starts_anew() -> None:
    wanted = a_master()
    node = replace(wanted, kubelet_kubeconfig="/var/lib/kubelet/kubeconfig", pod_network=True)

    assert needs_other_machine(wanted, node)
    assert needs_other_machine(node, wanted)
    assert not needs_other_machine(node, replace(node, kubelet_api="https://127.0.0.1:7443"))
    assert restarts(wanted, node) == (
        "etcd main", "etcd events", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
        "dns-controller", "kubelet",
    )  # fmt: skip
    assert fixed(wanted, node) == fixed(node, wanted) == ()
    assert fixed(node, replace(node, pod_network=False)) != ()


def test_kubernetes_that_is_added_starts_every_component_and_is_not_fixed() -> None:
    config = completed()
    before, after = master(config, kubernetes=False), master(config)

    assert restarts(before, after) == (
        "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "dns-controller",
    )  # fmt: skip
    assert fixed(before, after) == fixed(after, before) == ()


def test_an_etcd_cluster_that_is_new_or_gone_is_in_the_list_after_main_and_events() -> None:
    wanted = a_master()
    main, events = wanted.etcd
    more = replace(wanted, etcd=(replace(main, key="aaa"), replace(main, token="t"), replace(events, token="t")))

    assert restarts(wanted, more) == ("etcd aaa",)
    assert restarts(replace(wanted, etcd=()), more) == ("etcd main", "etcd events", "etcd aaa")


def test_a_master_of_an_earlier_release_has_no_kubelets_and_still_compares() -> None:
    plain = from_config(completed())

    assert restarts(plain, plain) == ()
    assert restarts(plain, from_config(completed(kubeScheduler={"logLevel": 4}))) == ("kube-scheduler",)


def test_each_fixed_value_is_named_with_what_it_was_and_would_be() -> None:
    wanted = a_master()
    main = wanted.etcd[0]
    pod_range = PodRange(network=ip_network("10.0.0.0/8"), node_mask=24)
    certificates = {
        **wanted.certificates,
        "kube-proxy": replace(wanted.certificates["kube-proxy"], authority="etcd-peer-ca"),
    }
    cases: list[tuple[MasterConfig, str]] = [
        (replace(wanted, cluster="other"), "the cluster name: dev.example.com -> other"),
        (replace(wanted, api_internal_name="a", api_public_name="b"),
            "the names of the API: api.internal.dev.example.com, api.dev.example.com -> a, b"),
        (replace(wanted, api_port=6443), "the port of the API: 443 -> 6443"),
        (replace(wanted, pod_network=True),
            "the pod network: not made by the agents -> made by the agents"),
        (replace(wanted, pod_ranges=(pod_range,)),
            "the pod ranges: 100.96.0.0/11 by /24 -> 10.0.0.0/8 by /24"),
        (replace(wanted, key_pairs=()), "the key pairs: service-account removed"),
        (replace(wanted, etcd=wanted.etcd[:1]), "the set of etcd clusters: events, main -> main"),
        (replace(wanted, certificates=certificates),
            "the authority of certificate kube-proxy: kubernetes-ca -> etcd-peer-ca"),
        (etcd_with(wanted, token="t"), f"the token of etcd main: {main.token} -> t"),
        (etcd_with(wanted, pod=replace(main.pod, data_dir="/d")),
            "the data directory of etcd main: /var/etcd/data -> /d"),
        (etcd_with(wanted, pod=replace(main.pod, client_port=2379)),
            "the client port of etcd main: 4001 -> 2379"),
        (etcd_with(wanted, pod=replace(main.pod, peer_port=2399)),
            "the peer port of etcd main: 2380 -> 2399"),
        (etcd_with(wanted, members=main.members[:2]), "the members of etcd main: a, b, c -> a, b"),
        (etcd_with(wanted, **member_with(main, zone="moon")),
            "the zone of member main/a: us-east-1a -> moon"),
        (etcd_with(wanted, **member_with(main, size=5)),
            f"the size of the disk in bytes of member main/a: {20 * 2**30} -> 5"),
        (etcd_with(wanted, **member_with(main, group="g")),
            "the instance group of member main/a: master-us-east-1a -> g"),
        (etcd_with(wanted, **member_with(main, name="n")), "the name in etcd of member main/a: etcd-a -> n"),
    ]  # fmt: skip

    for after, words in cases:
        assert fixed(wanted, after) == (words,)


def test_what_a_running_cluster_may_change_is_not_fixed() -> None:
    wanted = a_master()
    main = wanted.etcd[0]
    more = replace(wanted, key_pairs=(*wanted.key_pairs, "second"), certificate_lifetime=60.0)
    more = etcd_with(more, pod=replace(main.pod, metrics_port=1, image="x"), replace_lost_volumes=False)

    assert fixed(wanted, more) == ()


def test_an_authority_that_is_added_or_gone_is_fixed() -> None:
    wanted = a_master()
    fewer = {name: each for name, each in wanted.certificates.items() if each.authority != "front-proxy-ca"}

    assert fixed(wanted, replace(wanted, certificates=fewer)) == (
        "the set of certificate authorities: etcd-client-ca, etcd-peer-ca, front-proxy-ca, kubernetes-ca"
        " -> etcd-client-ca, etcd-peer-ca, kubernetes-ca",
    )


@given(specs())
@slow
def test_no_configuration_restarts_anything_for_itself(sample: Sample) -> None:
    left, right = master(complete(sample.spec)), master(complete(sample.spec))

    assert restarts(left, right) == ()
    assert fixed(left, right) == ()


@given(specs(), specs())
@slow
def test_the_way_back_restarts_the_same_and_is_fixed_in_the_same_cases(one: Sample, other: Sample) -> None:
    left, right = master(complete(one.spec)), master(complete(other.spec))

    assert restarts(left, right) == restarts(right, left)
    if left.key_pairs == right.key_pairs:
        assert bool(fixed(left, right)) == bool(fixed(right, left))
