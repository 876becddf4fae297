"""Templates of hosts and the revision in force change together, and what a stage says about those after it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from builders.revisions import CLUSTER, a_revision, keep, with_settings
from protokube.cli.shared.templates import KUBELETS_FOLLOW, follows, keep_hosts, relaunched, without_kubelets
from protokube.cli.shared.upgrade import others_since, without_returns
from protokube.errors import Refused
from protokube.launch.boot import LaunchDocument
from protokube.launch.machine import MasterConfig
from protokube.launch.revisions import put_in_force
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
