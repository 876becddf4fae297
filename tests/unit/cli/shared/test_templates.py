"""Templates of hosts and the revision in force change together, and what a stage says about those after it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from builders.revisions import CLUSTER, a_revision, keep, with_settings
from protokube.cli.shared.completing import complete_here
from protokube.cli.shared.progress import Progress
from protokube.cli.shared.templates import KUBELETS_FOLLOW, follows, keep_hosts, relaunched, without_kubelets
from protokube.cli.shared.upgrade import Planned, Target, others_since, roll_out, without_returns
from protokube.cli.up.choosing import default_spec, read_default_spec
from protokube.errors import Refused
from protokube.launch.boot import LaunchDocument
from protokube.launch.machine import MasterConfig
from protokube.launch.revisions import put_in_force, read_rollout
from protokube.local.base.paths import Paths
from protokube.local.bringup import launch_data, template
from protokube.providers.clients.memory import MemoryCloud
from protokube.providers.groups.memory import MemoryGroups
from protokube.store.memory import MemoryStore

ALONE = with_settings()
NODE = replace(ALONE, kubelet_kubeconfig="/kubeconfig")
ONE, TWO = a_revision(1, ALONE), a_revision(2, NODE)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> MemoryStore:
    made = MemoryStore(request.node.name)
    keep(made, ONE)
    put_in_force(made, CLUSTER, ONE, running=False)
    return made


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = Paths.at(tmp_path / CLUSTER)
    found.create()
    return found


def test_hosts_are_made_for_the_revision_in_force_and_for_no_other(store: MemoryStore, paths: Paths) -> None:
    made: list[MasterConfig] = []
    keep_hosts(paths, store, ONE.master, made.append)
    with pytest.raises(Refused, match="another command put revision 1 in force"):
        keep_hosts(paths, store, TWO.master, made.append)

    assert made == [ONE.master]


def test_a_command_whose_plan_does_not_hold_any_more_has_no_hosts_made(store: MemoryStore, paths: Paths) -> None:
    """While it fetched programs for ten minutes, another command put a revision in force."""
    made: list[MasterConfig] = []
    config = complete_here(read_default_spec(default_spec(CLUSTER, 3, events=False))[0], "3.6.8", "")
    target = Target(config=config, wanted=NODE, texts=[], make_hosts=made.append)
    seen = read_rollout(store, CLUSTER)
    assert seen is not None
    planned = Planned(record=seen, revision=ONE, base=ONE)
    other = a_revision(2, replace(ALONE, pod_network=True))
    third = a_revision(3, NODE)
    keep(store, other, third)
    put_in_force(store, CLUSTER, other, running=False)

    with pytest.raises(Refused, match="the cluster changed while this command ran"):
        roll_out(Progress(quiet=True), paths, store, third, 1.0, running=False, planned=planned, target=target)
    assert made == []

    now = replace(planned, record=put_in_force(store, CLUSTER, other, running=False))
    roll_out(Progress(quiet=True), paths, store, third, 1.0, running=False, planned=now, target=target)
    assert made == [third.master]


def test_a_command_that_was_killed_before_its_revision_was_in_force_is_seen(store: MemoryStore) -> None:
    assert not others_since(store, ALONE, 1)
    assert others_since(store, NODE, 1)
    keep(store, TWO)
    assert others_since(store, ALONE, 1)
    assert not others_since(store, NODE, 2)


def test_a_stage_without_kubelets_says_that_they_follow() -> None:
    assert follows(ALONE, NODE) == KUBELETS_FOLLOW
    assert follows(NODE, NODE) == follows(ALONE, ALONE) == follows(NODE, ALONE) == ""


def test_no_stage_leads_back_to_hosts_that_are_replaced_already() -> None:
    assert without_returns(ALONE, (ALONE, NODE)) == (ALONE, NODE)
    assert without_returns(NODE, (ALONE, NODE)) == (NODE,)
    assert without_returns(NODE, (ALONE,)) == (ALONE,)


def test_the_template_of_hosts_gets_other_launch_data_and_keeps_the_rest() -> None:
    plain = template(launch_data(ONE.master, "zone.example"), [Path("/cache/etcd")], Paths(Path("/state/laptop")))
    again = relaunched(plain, TWO.master)
    document = LaunchDocument.from_tree(json.loads(again["files"]["/etc/protokube/agent.json"]))

    assert document.master == TWO.master
    assert document.dns["zone"] == "zone.example"
    assert {**again, "files": {}} == {**plain, "files": {}}


def test_an_earlier_revision_brings_no_kubelets_back() -> None:
    with pytest.raises(Refused, match="cannot bring kubelets back"):
        without_kubelets(MemoryGroups(MemoryCloud()))(TWO.master)
