"""Each reason for which an unrequested value stays, and each for which it is removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.dns_objects import Document, a_node, a_pod, a_service
from clusters.dns_world import API, Cluster
from protokube.controllers.dns.write.confirm import PATIENCE, Look
from protokube.errors import TryLater
from protokube.records.onename import ADOPTED, INHERITED
from protokube.records.owners import Mark, Owned

NAME = "web.example.com"


def a_line(by: str, value: str = "10.0.0.1", kind: str = "A", name: str = NAME) -> Owned:
    return Owned(name, Mark(owner="a", type=kind, value=value, by=by))


def a_cluster(*documents: Document) -> Cluster:
    cluster = Cluster("a")
    for document in documents:
        cluster.put(document)
    return cluster


def a_look(cluster: Cluster, *, hidden: tuple[str, ...] = ()) -> Look:
    """Confirm in a cluster whose lists lack some objects."""
    cluster.hide(hidden)
    seen = cluster.look()
    return Look(cluster, seen.sources, seen.nodes)


POD = a_pod("web", node="n1", internal_names=NAME)
SERVICE = a_service("web", "NodePort", external_names=NAME)
NODE = a_node("n1", internal=["10.0.0.1"], external=["10.0.0.1"])
NAMED = a_node("n1", internal=["10.0.0.1"], internal_names=NAME)


def test_an_object_that_is_gone_lets_its_value_go() -> None:
    assert a_look(a_cluster()).doubt(a_line("pod/default/web"), 0) is None


def test_a_value_that_a_person_gave_to_us_goes_without_a_question() -> None:
    cluster = a_cluster()
    assert a_look(cluster).doubt(a_line(ADOPTED), 0) is None
    assert cluster.asked_for == []


LEFT = a_line(INHERITED, name=API)
SERVER = a_pod("kube-apiserver-n1", node="n1", internal_names=API)


def test_an_address_that_the_agents_left_goes_if_nobody_has_it() -> None:
    cluster = a_cluster(a_pod("kube-apiserver-n2", addresses=["10.0.0.2"], node="n2", internal_names=API))
    assert a_look(cluster).doubt(LEFT, 0) is None
    assert cluster.asked_for == ["service/default/kubernetes", "node/all"], "the API servers first, then the lists"


@pytest.mark.parametrize(
    ("document", "hidden", "asked", "lists_stale"),
    [
        pytest.param(NODE, False, 0, False, id="a node in the list"),
        pytest.param(SERVER, True, 1, False, id="an API server that the list leaves out"),
    ],
)
def test_an_address_that_the_agents_left_stays_for(
    document: Document, hidden: bool, asked: int, lists_stale: bool
) -> None:
    cluster = a_cluster(document)
    found = a_look(cluster, hidden=tuple(cluster.objects) if hidden else ()).doubt(LEFT, 10 * PATIENCE)
    assert found is not None
    assert (found.lists_stale, len(cluster.asked_for)) == (lists_stale, asked)


OUTSIDE = a_line(INHERITED, value="203.0.113.1", name=API)


@pytest.mark.parametrize("document", [NODE, SERVER], ids=["a node", "an API server"])
def test_an_external_address_that_the_agents_left_stays_for_the_master_behind_it(document: Document) -> None:
    cluster = a_cluster(document)
    assert a_look(cluster).doubt(OUTSIDE, 10 * PATIENCE) is None
    assert replace(a_look(cluster), external={"203.0.113.1": "10.0.0.1"}).doubt(OUTSIDE, 10 * PATIENCE) is not None


def test_an_external_address_that_the_agents_left_stays_for_a_node_that_only_a_new_list_has() -> None:
    cluster = a_cluster(NODE)
    look = replace(a_look(cluster, hidden=("node/n1",)), external={"203.0.113.1": "10.0.0.1"})
    cluster.heal()
    found = look.doubt(OUTSIDE, 10 * PATIENCE)
    assert found is not None
    assert found.lists_stale


def test_an_external_address_that_the_agents_left_goes_with_the_master_behind_it() -> None:
    cluster = a_cluster(a_pod("kube-apiserver-n2", addresses=["10.0.0.2"], node="n2", internal_names=API))
    assert replace(a_look(cluster), external={"203.0.113.1": "10.0.0.1"}).doubt(OUTSIDE, 0) is None


def test_an_address_that_the_agents_left_stays_for_a_node_that_only_a_new_list_has() -> None:
    cluster = a_cluster(NODE)
    look = a_look(cluster, hidden=("node/n1",))
    cluster.heal()
    found = look.doubt(LEFT, 10 * PATIENCE)
    assert found is not None
    assert found.lists_stale


def test_an_address_that_the_agents_left_stays_while_nobody_answers() -> None:
    cluster = a_cluster()
    cluster.answers = False
    with pytest.raises(TryLater):
        a_look(cluster).doubt(LEFT, 10 * PATIENCE)


@pytest.mark.parametrize(
    ("documents", "hidden", "by"),
    [
        pytest.param([POD], ["pod/default/web"], "pod/default/web", id="the object"),
        pytest.param([NAMED], ["node/n1"], "node/n1", id="the node that asks for its own address"),
        pytest.param([SERVICE, NODE], ["node/n1"], "service/default/web>node/n1", id="the node whose address it is"),
        pytest.param([SERVICE, NODE], ["service/default/web"], "service/default/web>node/n1", id="the service"),
    ],
)
def test_the_list_lies_if_it_lacks(documents: list[Document], hidden: list[str], by: str) -> None:
    found = a_look(a_cluster(*documents), hidden=tuple(hidden)).doubt(a_line(by), 10 * PATIENCE)
    assert found is not None
    assert found.lists_stale
    assert "is there and asks for it" in found.why


def test_a_pod_keeps_its_address_if_only_the_list_says_that_its_node_has_another_one() -> None:
    cluster = a_cluster(POD, a_node("n1", internal=["10.9.9.9"]))
    look = a_look(cluster)
    cluster.put(NODE)
    found = look.doubt(a_line("pod/default/web"), 10 * PATIENCE)
    assert found is not None
    assert found.lists_stale


def test_an_object_that_asks_for_something_else_now_lets_its_value_go() -> None:
    cluster = a_cluster(a_pod("web", node="n1", internal_names="other.example.com"))
    assert a_look(cluster).doubt(a_line("pod/default/web"), 0) is None


def test_an_object_that_has_another_address_now_lets_the_old_one_go() -> None:
    cluster = a_cluster(a_pod("web", node="n1", addresses=["10.0.0.2"], internal_names=NAME))
    assert a_look(cluster).doubt(a_line("pod/default/web"), 0) is None


def test_a_value_that_lost_to_another_object_goes_though_its_object_asks_for_it() -> None:
    """The lists contain its request, and the decision came from them."""
    assert a_look(a_cluster(POD)).doubt(a_line("pod/default/web"), 0) is None


@pytest.mark.parametrize(("absent", "stays"), [(0.0, True), (PATIENCE - 1, True), (PATIENCE, False)])
def test_an_object_without_an_address_keeps_its_last_one_for_a_while(absent: float, stays: bool) -> None:
    cluster = a_cluster(a_service("web", "LoadBalancer", external_names=NAME))
    found = a_look(cluster).doubt(a_line("service/default/web"), absent)
    assert (found is not None) == stays
    assert found is None or not found.lists_stale


def test_a_name_whose_last_node_is_gone_keeps_its_address_for_a_while() -> None:
    found = a_look(a_cluster(SERVICE)).doubt(a_line("service/default/web>node/n1"), 0)
    assert found is not None
    assert "has no address now" in found.why


def test_a_name_that_other_nodes_answer_for_lets_the_address_of_a_node_that_is_gone_go() -> None:
    cluster = a_cluster(SERVICE, a_node("n2", external=["10.0.0.2"]))
    assert a_look(cluster).doubt(a_line("service/default/web>node/n1"), 0) is None


def test_another_node_that_asks_for_the_name_does_not_answer_for_this_one() -> None:
    """What counts is what this very object gets."""
    cluster = a_cluster(a_node("n1", internal=[], internal_names=NAME), a_node("n2", internal_names=NAME))
    found = a_look(cluster).doubt(a_line("node/n1"), 0)
    assert found is not None


def test_each_object_is_asked_for_once() -> None:
    cluster = a_cluster(SERVICE, NODE)
    look = a_look(cluster, hidden=("node/n1",))
    for value in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
        look.doubt(a_line("service/default/web>node/n1", value), 0)
    assert sorted(cluster.asked_for) == ["node/n1", "service/default/web"]


def test_a_server_that_does_not_answer_is_no_answer() -> None:
    cluster = a_cluster(POD)
    cluster.answers = False
    with pytest.raises(TryLater):
        a_look(cluster).doubt(a_line("pod/default/web"), 0)
