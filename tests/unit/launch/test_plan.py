"""The plan of a change: the values, what is refused, what restarts, and who does not answer meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given

from builders.config import a_group, completed, read_back, written
from builders.examples import examples
from protokube.config.complete import Config, complete
from protokube.config.why import fields
from protokube.launch.change import restarts
from protokube.launch.derive import from_config
from protokube.launch.machine import MasterConfig
from protokube.launch.plan import ChangePlan, plan
from unit.config.specs import Sample, specs

slow = examples(15, derandomize=True, suppress_health_check=list(HealthCheck))
MASTERS = ("master-a", "master-b", "master-c")


def planned(old: Config, new: Config, masters: tuple[str, ...] = MASTERS, **after: Any) -> ChangePlan:
    return plan(old, new, from_config(old), replace(from_config(new), **after), masters)


def paths(found: ChangePlan) -> list[str]:
    return [each.path for each in found.values]


def test_the_same_configuration_changes_nothing() -> None:
    found = planned(completed(), completed())

    assert not found.changes
    assert not found.api_away
    assert (found.values, found.refused, found.restarts, found.masters) == ((), (), (), MASTERS)


def test_what_the_user_set_comes_first_and_what_follows_from_it_is_kept_and_marked() -> None:
    found = planned(completed(), completed(kubelet={"maxPods": 60}, sshAccess=["10.0.0.0/8"]))

    groups = [f"instanceGroups.{name}.kubelet.maxPods" for name in ("master-us-east-1a", "nodes")]
    assert paths(found)[:2] == ["sshAccess", "kubelet.maxPods"]
    assert set(groups) <= found.following
    assert "kubelet.maxPods" not in found.following
    assert not any(".flags." in path or ".file." in path for path in paths(found))


def test_a_setting_that_is_left_out_again_is_one_that_the_user_changed() -> None:
    found = planned(completed(kubelet={"maxPods": 60}), completed())

    assert paths(found)[0] == "kubelet.maxPods"
    assert found.values[0].right.reason.startswith("default, ")


def test_only_flags_and_files_are_shown_if_nothing_else_differs() -> None:
    old = completed()
    rendered = {**old.rendered, "": {**old.rendered[""]}}
    api = rendered[""]["kubeAPIServer"]
    rendered[""]["kubeAPIServer"] = {**api, "flags": {**api["flags"], "v": 9}}
    found = planned(old, replace(old, rendered=rendered))

    assert paths(found) == ["kubeAPIServer.flags.v"]
    assert found.restarts == ("kube-apiserver",)


def test_the_cause_of_a_refusal_is_reported_and_not_what_follows_from_it() -> None:
    found = planned(completed(), completed(masters=5, podCIDR="100.112.0.0/12"))

    assert [each.path for each in found.refused] == ["masters", "podCIDR"]
    assert all(each.hint and each.where and each.where.file == "spec.yaml" for each in found.refused)


def test_an_item_that_is_added_is_one_value() -> None:
    found = planned(completed(), completed(masters=5))

    assert "instanceGroups.master-us-east-1a-2" in paths(found)
    assert not any(path.startswith("instanceGroups.master-us-east-1a-2.") for path in paths(found))
    assert paths(found)[0] == "masters"
    assert found.following == {*paths(found)} - {"masters"}


def test_fields_that_the_user_wrote_in_a_new_item_are_shown_before_those_that_complete_it() -> None:
    old = completed(a_group("nodes"))
    found = planned(old, completed(a_group("nodes"), a_group("more", minSize=3)))

    own = [path for path in paths(found) if path not in found.following]
    assert own == ["instanceGroups.more.role", "instanceGroups.more.minSize"]
    assert "instanceGroups.more.kubelet.maxPods" in found.following
    assert found.refused == ()


def test_a_removed_group_of_a_stored_configuration_is_one_value() -> None:
    old = read_back(written(completed(a_group("nodes"), a_group("more", minSize=3))))
    found = planned(old, completed(a_group("nodes")))

    assert "instanceGroups.more" in paths(found)
    assert not any(path.startswith("instanceGroups.more.") for path in paths(found))


def test_a_mapping_that_was_empty_is_shown_by_its_new_fields_only() -> None:
    old, new = completed(), completed(masterKubelet={"maxPods": 60})
    found = planned(old, new)

    assert "masterKubelet" not in paths(found)
    assert "masterKubelet.maxPods" in paths(found)


def test_a_fixed_value_that_no_field_explains_is_refused_too() -> None:
    found = planned(completed(), completed(), api_port=7443)

    (problem,) = found.refused
    assert problem.path == ""
    assert problem.message == "cannot change on a running cluster: the port of the API: 443 -> 7443"
    assert problem.hint
    assert found.changes


def test_a_fixed_value_that_a_refused_field_explains_is_reported_once() -> None:
    for cluster in ({"name": "other.example.com"}, {"kubeAPIServer": {"securePort": 7443}}, {"zones": ["us-east-1d"]}):
        found = planned(completed(), completed(**{"masters": 3, **cluster}))
        assert found.refused
        assert all(each.path for each in found.refused), cluster


def shapes() -> tuple[Config, MasterConfig, MasterConfig, MasterConfig]:
    """A configuration, and its masters with etcd alone, with a control plane, and as nodes."""
    config = completed(kubernetesVersion="1.34.1")
    control = from_config(config, nodes=False)
    nodes = replace(from_config(config, nodes=True), kubelet_kubeconfig="/kubeconfig", pod_network=True)
    return config, from_config(config, kubernetes=False), control, nodes


def test_kubernetes_and_kubelets_are_added_in_two_stages_and_the_second_replaces_hosts() -> None:
    config, alone, control, nodes = shapes()
    found = plan(config, config, alone, nodes, MASTERS)

    assert (found.refused, found.values) == ((), ())
    assert found.adds == ("Kubernetes 1.34.1", "kubelets, so that masters are nodes which run pods")
    assert found.replacing == (False, True)
    assert found.stages[0] == restarts(alone, control)
    assert "kube-proxy" not in found.stages[0]
    assert {"etcd main", "kube-proxy", "kubelet"} <= set(found.stages[1])
    assert [each for each in found.one_way if "delete old revisions of every key" in each]


def test_what_nobody_has_read_before_is_no_change_of_a_value() -> None:
    config, alone, control, _ = shapes()
    found = plan(completed(kubernetesVersion="1.33.1", podCIDR="100.112.0.0/12"), config, alone, control, MASTERS)

    assert found.refused == ()
    assert not [each for each in paths(found) if each.startswith(("kube", "podCIDR"))]
    assert found.adds == ("Kubernetes 1.34.1",)
    assert found.replacing == (False,)


def test_kubelets_alone_are_one_stage() -> None:
    config, _, control, nodes = shapes()
    found = plan(config, config, control, nodes, MASTERS)

    assert found.refused == ()
    assert (len(found.stages), found.replacing, found.one_way) == (1, (True,), ())


def test_kubernetes_and_kubelets_cannot_be_removed_and_the_reason_is_told() -> None:
    config, alone, control, nodes = shapes()
    steps = ((control, alone, "Kubernetes"), (nodes, alone, "Kubernetes"), (nodes, control, "kubelets"))
    for before, after, what in steps:
        (problem,) = plan(config, config, before, after, MASTERS).refused
        assert problem.message.startswith(f"{what} cannot be removed from a running cluster: ")
        assert "rollout undo" in problem.hint


def test_an_addition_that_not_all_masters_took_can_be_undone() -> None:
    config, alone, control, nodes = shapes()
    for base, present in ((alone, control), (control, nodes)):
        assert plan(config, config, base, base, MASTERS, None, present).refused == ()


def test_an_api_that_nobody_had_is_not_away_while_the_only_master_starts_it() -> None:
    config, alone, control, nodes = shapes()

    assert not plan(config, config, alone, control, ("a",)).api_away
    assert plan(config, config, alone, nodes, ("a",)).api_away, "its etcd is away while its host is replaced"
    assert not plan(config, config, alone, nodes, MASTERS).api_away


def test_a_cluster_that_stays_with_etcd_alone_gets_no_api() -> None:
    config, alone, control, _ = shapes()

    assert not plan(config, config, alone, alone, MASTERS).first_api
    assert plan(config, config, alone, control, MASTERS).first_api


def test_etcd_alone_is_not_refused_for_what_only_kubernetes_reads() -> None:
    def without(new: Config) -> list[str]:
        old = completed()
        before, after = (from_config(each, kubernetes=False) for each in (old, new))
        return [each.path for each in plan(old, new, before, after, MASTERS).refused]

    etcd = {"etcdClusters": [{"name": name, "version": "3.6.8"} for name in ("main", "events")]}
    assert without(completed(kubernetesVersion="1.35.1", podCIDR="100.112.0.0/12", **etcd)) == []
    assert without(completed(masterKubelet={"rootDir": "/data"}, networking={"plugin": "cilium"})) == []
    assert without(completed(masters=5)) == ["masters"]
    assert without(completed(kubernetesVersion="1.31.1"))[0].startswith("etcdClusters.")


def test_the_api_does_not_answer_while_a_single_master_restarts_etcd_or_the_api_server() -> None:
    def away(masters: tuple[str, ...], **cluster: Any) -> bool:
        return planned(completed(), completed(**cluster), masters).api_away

    quota = {"etcdClusters": [{"name": "main", "quotaBackendBytes": 2**32}, {"name": "events"}]}
    assert away(("a",), kubeAPIServer={"logLevel": 4})
    assert away(("a",), **quota)
    assert not away(MASTERS, **quota)
    assert not away(("a",), kubeScheduler={"logLevel": 4})
    assert not away(("a",), additionalSans=["x.example.com"])


@given(specs(), specs())
@slow
def test_every_value_of_a_plan_really_differs_and_every_difference_has_one(one: Sample, other: Sample) -> None:
    old, new = complete(one.spec), complete(other.spec)
    found = planned(old, new)
    left, right = fields(old), fields(new)
    shown = paths(found)

    assert len(shown) == len(set(shown))
    assert all(each.left != each.right for each in found.values)
    for path in left.keys() | right.keys():
        if left.get(path, left) != right.get(path, right) and {} not in (left.get(path), right.get(path)):
            assert any(path == each or path.startswith(f"{each}.") for each in shown), path
    assert found.following <= set(shown)
    assert len({(each.path, each.message) for each in found.refused}) == len(found.refused)


@given(specs())
@slow
def test_a_stored_configuration_that_is_read_again_changes_nothing(sample: Sample) -> None:
    config = complete(sample.spec)

    assert not planned(read_back(written(config)), config).changes
