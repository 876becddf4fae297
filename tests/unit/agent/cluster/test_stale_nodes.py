"""The Node of a machine that is gone is taken away; whenever there is any doubt, it stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.addons import MemoryKube
from builders.agent import Alone, Machines, a_machine, a_round
from builders.config import completed
from clusters.scenario.edges import HostClock
from protokube.addons.nodes import MACHINE
from protokube.addons.value import Tree
from protokube.agent.cache import Missed
from protokube.agent.cluster import steps
from protokube.agent.cluster.stale_nodes import LISTS, SECONDS, StaleNodesCache, counted, is_gone, suspects
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.errors import TryLater
from protokube.launch.derive import from_config
from protokube.providers.machines import Machine

NODE = "/api/v1/nodes/n-1"


def a_node(name: str = "n-1", *, machine: str = "n-1", ready: str = "Unknown") -> Tree:
    conditions = [{"type": "DiskPressure", "status": "False"}] + ([{"type": "Ready", "status": ready}] if ready else [])
    annotations = {MACHINE: machine} if machine else {}
    return {"metadata": {"name": name, "uid": f"uid of {name}", "annotations": annotations},
            "status": {"conditions": conditions}}  # fmt: skip


names = st.sampled_from(["i-1", "i-2", "n-1", "n-2", "n-3"])
machines = st.lists(st.builds(lambda known, name: replace(a_machine(known), name=name), names, names))
nodes = st.lists(
    st.builds(
        lambda name, machine, ready: a_node(name, machine=machine, ready=ready),
        names,
        st.one_of(st.just(""), names),
        st.sampled_from(["True", "False", "Unknown", "", "something"]),
    )
)


@given(nodes, machines)
def test_only_a_node_of_ours_that_is_not_ready_and_that_nobody_stands_behind_is_suspected(
    listed: list[Tree], there: list[Machine]
) -> None:
    found = {(each.name, each.machine) for each in suspects(listed, there, "i-1")}
    for node in listed:
        name, machine = node["metadata"]["name"], node["metadata"]["annotations"].get(MACHINE, "")
        ready = [each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"]
        right = (
            machine != ""
            and "i-1" in {each.id for each in there}
            and machine not in {each.id for each in there}
            and name not in {each.name for each in there}
            and ready in (["False"], ["Unknown"])
        )
        if right:
            assert (name, machine) in found
    assert len(found) <= len(listed)
    for name, machine in found:
        assert machine not in {each.id for each in there}
        assert name not in {each.name for each in there}
        assert any(
            each["status"] in ("False", "Unknown")
            for node in listed
            if (node["metadata"]["name"], node["metadata"]["annotations"].get(MACHINE)) == (name, machine)
            for each in node["status"]["conditions"]
            if each["type"] == "Ready"
        )


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 100)), max_size=40))
def test_it_is_gone_only_after_a_row_of_lists_that_lasted_a_minute(looks: list[tuple[bool, float]]) -> None:
    (suspect,) = suspects([a_node()], [a_machine()], "i-1")
    memory: dict[str, Missed] = {}
    now = 0.0
    row: list[float] = []
    for missing, passed in looks:
        now += passed
        row = [*row, now] if missing else []
        memory = counted(memory, [suspect] if missing else [], now)
        gone = missing and is_gone(memory[suspect.uid], now)
        assert gone == (len(row) >= LISTS and row[-1] - row[0] >= SECONDS)


def test_a_node_that_was_made_anew_begins_anew() -> None:
    (old,) = suspects([a_node()], [a_machine()], "i-1")
    memory = counted({old.uid: Missed(9, 0.0)}, [replace(old, uid="another")], 100.0)
    assert memory == {"another": Missed(1, 100.0)}


class Silent(Machines):
    """A provider that does not answer."""

    def list_machines(self) -> Sequence[Machine]:
        raise TryLater("the provider does not answer")


class Elected:
    """Rounds of the elected master, with a machine that is gone and its Node that is not."""

    def __init__(self, root: Path) -> None:
        self.kube = MemoryKube()
        self.wanted = from_config(completed(cloud="local", name="laptop", masters=1, nodes=1))
        presence = Alone({}, elected=True, serving=["i-1"])
        self.edges = a_round(root, wanted=self.wanted, kube=self.kube, presence=presence).edges
        self.edges.machines = Machines(a_machine())
        self.kube.put(NODE, a_node())

    def round(self, passed: float = 0.0) -> Round:
        cast(HostClock, self.edges.clock).common.advance(passed)
        round_ = Round(edges=self.edges, wanted=self.wanted, report=Report())
        steps.sync(round_)
        round_.forget()
        return round_

    def rounds(self, count: int = 12, passed: float = 10.0) -> list[str]:
        return [each.text for _ in range(count) for each in self.round(passed).report.did]


@pytest.fixture
def elected(tmp_path: Path) -> Elected:
    return Elected(tmp_path)


def test_the_node_of_a_machine_that_is_gone_is_taken_away_after_a_minute(elected: Elected) -> None:
    first = elected.round()
    assert [each.about for each in first.report.waits] == ["n-1"]
    assert elected.rounds(5) == []
    assert NODE in elected.kube.objects

    assert elected.rounds(2) == ["deleted: its machine n-1 is gone"]
    assert NODE not in elected.kube.objects
    assert elected.round(10).report.settled


@pytest.mark.parametrize("fields", [{"machine": ""}, {"ready": "True"}, {"ready": ""}, {"machine": "i-1"}])
def test_a_node_that_is_not_ours_or_ready_or_new_or_of_a_machine_that_is_there_stays(
    elected: Elected, fields: dict[str, Any]
) -> None:
    elected.kube.put(NODE, a_node(**fields))
    assert elected.rounds() == []
    assert NODE in elected.kube.objects


@pytest.mark.parametrize("other", [Machines(a_machine(), a_machine("n-1", group="nodes")), Silent(a_machine())])
def test_a_list_that_has_it_again_or_does_not_come_begins_the_row_anew(elected: Elected, other: Machines) -> None:
    elected.rounds(6)
    elected.edges.machines = other
    elected.round(10)
    elected.edges.machines = Machines(a_machine())
    elected.edges.cache.of(StaleNodesCache).settled = None
    assert elected.rounds(6) == []
    assert NODE in elected.kube.objects
    assert elected.rounds(2) == ["deleted: its machine n-1 is gone"]


def test_who_is_elected_anew_has_to_see_for_itself(elected: Elected) -> None:
    elected.rounds(6)
    elected.edges.presence = Alone({}, elected=False, serving=["i-1"])
    elected.round(3600)
    elected.edges.presence = Alone({}, elected=True, serving=["i-1"])
    assert elected.rounds(6) == []
    assert NODE in elected.kube.objects


def test_nodes_of_ours_say_which_machine_they_are(elected: Elected) -> None:
    other = replace(a_machine("m-7", group="nodes"), name="n-1")
    elected.edges.machines = Machines(a_machine(), other)
    for name in ("i-1", "stranger"):
        elected.kube.put(f"/api/v1/nodes/{name}", {"metadata": {"name": name}, "spec": {}})
    elected.round()
    found = {
        path.rpartition("/")[2]: tree["metadata"].get("annotations") for path, tree in elected.kube.objects.items()
    }
    assert found == {"i-1": {MACHINE: "i-1"}, "n-1": {MACHINE: "m-7"}, "stranger": None}
