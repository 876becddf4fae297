"""Steps between versions that a running cluster may take, and the stages in which masters take them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.config import completed
from builders.examples import examples
from protokube.launch.change import restarts
from protokube.launch.derive import from_config, master_kubelets
from protokube.launch.machine import MasterConfig
from protokube.launch.versions import (
    StillOld,
    in_use,
    jumps,
    lowered,
    may_run,
    one_way,
    raised,
    rehearsed,
    stages,
    steps_refused,
)
from protokube.manifests.component import ComponentPod


def a_master(etcd: str = "3.5.26", kubernetes: str = "1.33.2", **cluster: Any) -> MasterConfig:
    """What masters get with these versions, kubelets included."""
    clusters = [{"name": "main", "version": etcd}, {"name": "events", "version": etcd}]
    config = completed(kubernetesVersion=kubernetes, **{"etcdClusters": clusters, **cluster})
    return replace(from_config(config, nodes=True), kubelets=master_kubelets(config))


def messages(before: MasterConfig, after: MasterConfig, still: StillOld | None = None) -> list[str]:
    return [each.message for each in steps_refused(before, after, still)]


ETCD_STEPS = [
    ("3.4.30", "3.5.26", ""),
    ("3.4.30", "3.4.31", ""),
    ("3.5.26", "3.5.20", ""),
    ("3.5.26", "3.6.8", ""),
    ("3.6.8", "3.6.8", ""),
    ("3.4.30", "3.6.8", "cannot go from 3.4.30 to 3.6.8: go up one minor version at a time"),
    ("3.5.26", "3.4.30", "cannot go from 3.5.26 to 3.4.30: its data is that of 3.5.26, which 3.4 cannot read"),
    ("3.5.24", "3.6.8", "cannot go from 3.5.24 to 3.6.8: members that joined as learners may be learners again under "
     "3.6; 3.5.26 is the first one that repairs this"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "refused"), ETCD_STEPS)
def test_etcd_goes_up_one_minor_version_at_a_time(old: str, new: str, refused: str) -> None:
    problems = list(steps_refused(a_master(old), a_master(new)))

    assert [each.message for each in problems] == ([refused] * 2 if refused else [])
    assert {each.path for each in problems} <= {"etcdClusters.main.version", "etcdClusters.events.version"}
    assert all(each.hint for each in problems)


KUBERNETES_STEPS = [
    ("1.33.2", "1.34.1", ""),
    ("1.33.2", "1.33.9", ""),
    ("1.33.9", "1.33.2", ""),
    ("1.33.2", "1.35.1", "cannot go from 1.33.2 to 1.35.1: go up one minor version at a time"),
    ("1.33.2", "1.32.9", "cannot go from 1.33.2 to 1.32.9: objects may be stored in forms that 1.32 cannot read"),
]


@pytest.mark.parametrize(("old", "new", "refused"), KUBERNETES_STEPS)
def test_kubernetes_goes_up_one_minor_version_at_a_time(old: str, new: str, refused: str) -> None:
    assert messages(a_master(kubernetes=old), a_master(kubernetes=new)) == ([refused] if refused else [])


def test_while_a_member_runs_the_old_version_the_others_may_return_to_it() -> None:
    new, old = a_master("3.6.8"), a_master("3.5.26")

    assert messages(new, old, StillOld(etcd={"main": "3.5.0", "events": "3.5.0"})) == []
    assert len(messages(new, old, StillOld(etcd={"main": "3.6.0", "events": "3.5.0"}))) == 1


def test_while_an_api_server_runs_the_old_version_the_others_may_return_to_it() -> None:
    new, old = a_master(kubernetes="1.34.1"), a_master(kubernetes="1.33.2")

    assert messages(new, old, StillOld(kubernetes="1.33.2")) == []
    assert len(messages(new, old, StillOld(kubernetes="1.34.1"))) == 1


def test_an_agent_takes_no_step_up_that_skips_a_version_and_leaves_steps_down_to_its_etcd() -> None:
    ok = [("3.5.26", "3.6.8"), ("3.5.26", "3.5.20"), ("3.6.8", "3.5.26"), ("3.6.8", "3.4.23"), ("3.5.26", "3.5.26")]
    bad = [("3.5.20", "3.6.8"), ("3.4.23", "3.6.8")]

    assert [jumps(a_master(old), a_master(new)) for old, new in ok] == [()] * len(ok)
    assert all(jumps(a_master(old), a_master(new)) for old, new in bad)
    assert jumps(a_master(kubernetes="1.33.2"), a_master(kubernetes="1.34.1")) == ()
    assert jumps(a_master(kubernetes="1.34.1"), a_master(kubernetes="1.33.2")) == ()
    assert "1.33.2 to 1.35.0" in jumps(a_master(kubernetes="1.33.2"), a_master(kubernetes="1.35.0"))[0]


def test_a_version_whose_image_the_user_has_set_must_come_with_another_image() -> None:
    pinned: dict[str, Any] = {
        "etcdClusters": [{"name": "main", "version": "3.5.26", "image": "registry.example/etcd:mine"}]
    }
    newer: dict[str, Any] = {
        "etcdClusters": [{"name": "main", "version": "3.5.27", "image": "registry.example/etcd:mine"}]
    }
    server: dict[str, Any] = {"kubeAPIServer": {"image": "registry.example/api:mine"}}

    assert "stays registry.example/etcd:mine" in messages(a_master(**pinned), a_master(**newer))[0]
    (message,) = messages(a_master(**server), a_master(kubernetes="1.34.1", **server))
    assert message.endswith("stays the same for kube-apiserver")


def without_versions(wanted: MasterConfig, etcd: str = "") -> MasterConfig:
    """As an older protokube wrote it; with another image of etcd whose tag tells nothing, if one is given."""
    pods = [replace(each.pod, image=etcd or each.pod.image) for each in wanted.etcd]
    clusters = [replace(each, version="", pod=pod) for each, pod in zip(wanted.etcd, pods, strict=True)]
    return replace(wanted, etcd=tuple(clusters), kubernetes="")


def test_versions_that_an_older_protokube_did_not_record_are_read_off_the_images() -> None:
    old, new = without_versions(a_master("3.5.26", "1.33.2")), a_master("3.6.8", "1.34.1")

    assert messages(old, new) == []
    assert "its data is that of 3.6.8, which 3.5 cannot read" in messages(new, old)[0]
    assert "objects may be stored in forms that 1.33 cannot read" in messages(new, old)[-1]
    assert (raised(old, new), lowered(new, old)) == (("main", "events"), ("main", "events"))
    assert not may_run(old.etcd[0], "3.6.0")
    assert len(stages(old, new)) == 3


def test_a_return_to_an_etcd_of_unknown_version_is_refused() -> None:
    unknown, new = without_versions(a_master("3.5.26"), "registry.example/etcd:mine"), a_master("3.6.8")

    assert "cannot go from 3.6.8 to an unknown version: registry.example/etcd:mine" in messages(new, unknown)[0]
    assert messages(unknown, new) == []
    assert len(messages(unknown, a_master("3.5.26"), StillOld(etcd={"main": "3.6.0", "events": "3.6.0"}))) == 2
    assert messages(unknown, unknown) == []


def test_members_that_all_run_the_new_version_have_no_way_back_though_they_agree_on_it_only_in_a_moment() -> None:
    """An `undo` right after an upgrade was accepted, and its members then found data that they could not read."""
    assert in_use("3.5.0", ["3.6.8", "3.6.8", "3.6.8"]) == "3.6.8"
    assert in_use("3.5.0", ["3.6.8", "3.5.26", "3.6.8"]) == "3.5.0"
    assert in_use("3.6.0", ["3.6.8", "3.6.8"]) == "3.6.0"
    assert in_use("3.5.0", []) == in_use("", ["3.5.26"]) == "", "nobody says what is in use: no way back"


def test_the_old_program_is_not_rehearsed_with_data_that_its_members_have_raised() -> None:
    """A rollout that stopped with all members on 3.6 could otherwise neither go on nor back."""
    old, new = a_master("3.5.26").etcd[0], a_master("3.6.8").etcd[0]

    assert rehearsed(old, new, "3.5.0") == (old.pod.image, new.pod.image)
    assert rehearsed(old, new, "3.6.0") == (new.pod.image,)


def test_the_plan_names_what_cannot_be_undone() -> None:
    sentences = one_way(a_master("3.5.26", "1.33.2"), a_master("3.6.8", "1.34.1"))

    assert [each.partition(":")[0] for each in sentences] == [
        "etcd main 3.5 -> 3.6", "etcd events 3.5 -> 3.6", "Kubernetes 1.33 -> 1.34",
    ]  # fmt: skip
    assert one_way(a_master("3.5.26"), a_master("3.5.27")) == ()


def test_an_upgrade_takes_etcd_first_then_api_servers_then_kubelets_and_proxies() -> None:
    before, after = a_master("3.5.26", "1.33.2"), a_master("3.6.8", "1.34.1")

    first, second, third = stages(before, after)

    assert first == replace(before, etcd=after.etcd)
    images = {each.name: each.image for each in second.components}
    assert images["kube-apiserver"].endswith(":v1.34.1")
    assert images["kube-proxy"].endswith(":v1.33.2")
    assert second.etcd == after.etcd
    assert {each.version for each in second.kubelets.values()} == {"1.33.2"}
    assert third == after


def test_a_kubelet_of_another_version_counts_as_a_restart_of_everything_on_its_master() -> None:
    before, after = a_master(kubernetes="1.33.2"), a_master(kubernetes="1.34.1")
    *_, second, third = stages(before, after)

    assert "kubelet" not in restarts(before, second)
    assert {"etcd main", "etcd events", "kube-apiserver", "kube-proxy", "kubelet"} <= set(restarts(second, third))


def test_the_way_back_takes_kubelets_and_proxies_before_api_servers() -> None:
    first, second = stages(a_master(kubernetes="1.33.9"), a_master(kubernetes="1.33.2"))

    assert {each.version for each in first.kubelets.values()} == {"1.33.2"}
    assert {each.name: each.image for each in first.components}["kube-apiserver"].endswith(":v1.33.9")
    assert second == a_master(kubernetes="1.33.2")


def test_a_change_without_another_version_is_one_stage_whatever_its_number() -> None:
    before = replace(a_master(), revision=3, addons="old")
    after = replace(a_master(kubeAPIServer={"logLevel": 4}), revision=4, addons="new")

    assert stages(before, after) == (after,)
    assert stages(before, before) == (before,)


versions = st.builds("{}.{}.{}".format, st.just(3), st.integers(4, 7), st.integers(0, 40))


@given(versions, versions, st.sampled_from(["1.33.2", "1.33.9", "1.34.1"]), st.sampled_from(["1.33.2", "1.34.1"]))
@examples(60)
def test_no_stage_has_a_kubelet_that_is_newer_than_an_api_server(old: str, new: str, was: str, now: str) -> None:
    before, after = with_etcd(a_master(kubernetes=was), old), with_etcd(a_master(kubernetes=now), new)

    for pair in pairwise((before, *stages(before, after))):  # masters of both run side by side
        kubelets = [numbers(each.version) for one in pair for each in one.kubelets.values()]
        proxies = [numbers(each.image.rpartition(":v")[2]) for one in pair for each in one.components if proxy(each)]
        oldest = min(numbers(each.kubernetes) for each in pair)
        assert max(kubelets + proxies) <= oldest
    assert stages(before, after)[-1] == after


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def proxy(component: ComponentPod) -> bool:
    return component.name == "kube-proxy"


@given(versions, versions)
@examples(60)
def test_etcd_is_raised_or_lowered_and_never_both(old: str, new: str) -> None:
    before, after = with_etcd(BASE, old), with_etcd(BASE, new)

    assert not (set(raised(before, after)) & set(lowered(before, after)))
    assert bool(raised(before, after)) == (numbers(new) > numbers(old))
    for etcd in after.etcd:
        assert may_run(etcd, old) == (numbers(new)[:2] >= numbers(old)[:2])
        assert (etcd.key in lowered(before, after)) == (numbers(new)[:2] < numbers(old)[:2])


BASE = a_master()


def with_etcd(wanted: MasterConfig, version: str) -> MasterConfig:
    return replace(wanted, etcd=tuple(replace(each, version=version) for each in wanted.etcd))
