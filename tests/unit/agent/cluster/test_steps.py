"""The cluster once its API answers: our own Node, and what the elected master does for all."""

from __future__ import annotations

import datetime as dt
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from builders.addons import MemoryKube, an_addon, an_object
from builders.agent import Alone, Machines, a_machine, a_round
from builders.config import completed
from builders.requests import NODES, a_first_request, a_request, content
from clusters.scenario.edges import HostClock
from protokube.addons import approve, tokens
from protokube.addons.nodes import CONTROL_PLANE
from protokube.addons.record import PATH as RECORD
from protokube.addons.record import from_tree
from protokube.addons.value import Addon, Tree, label_of, ref
from protokube.agent.cluster import approvals, nodes, steps
from protokube.agent.cluster.addons import AGAIN, EVERY
from protokube.agent.controlplane import nodekeys
from protokube.agent.round import Round
from protokube.errors import ProtokubeError, TryLater
from protokube.kube.client import ApiError
from protokube.launch.derive import from_config
from protokube.launch.machine import MasterConfig
from protokube.store.addons import put_addons
from protokube.store.memory import MemoryStore

NODE = "/api/v1/nodes/i-1"
ONE = "/api/v1/namespaces/kube-system/configmaps/one"
TWO = "/api/v1/namespaces/kube-system/configmaps/two"
Rounds = Callable[..., Round]


class Slow(MemoryKube):
    """A server that takes its time for every change."""

    def __init__(self, fast: MemoryKube, clock: HostClock, seconds: float) -> None:
        super().__init__()
        self.objects, self.clock, self.seconds = fast.objects, clock, seconds

    def merge(self, path: str, tree: Tree) -> Tree:
        self.clock.common.advance(self.seconds)
        return super().merge(path, tree)


@pytest.fixture
def kube() -> MemoryKube:
    return MemoryKube()


@pytest.fixture
def rounds(tmp_path: Path, kube: MemoryKube) -> Rounds:
    """One round after the other of one master; the add-ons are those that were given last."""
    store = MemoryStore(tmp_path.name)
    plain = from_config(completed(cloud="local", name="laptop", masters=1, nodes=1))
    first = a_round(tmp_path, wanted=plain, kube=kube, store=store, presence=Alone({}, elected=True, serving=["i-1"]))
    first.edges.machines = Machines(a_machine(), a_machine("n-1", group="nodes"))
    wanted: list[MasterConfig] = [plain]

    def again(*addons: Addon, passed: float = 0.0, **presence: Any) -> Round:
        if addons:
            wanted.append(replace(plain, addons=put_addons(store, plain.cluster, addons)))
        if presence:
            first.edges.presence = Alone({}, **{"elected": True, "serving": ["i-1"], **presence})
        cast(HostClock, first.edges.clock).common.advance(passed)
        round_ = a_round(tmp_path, wanted=wanted[-1])
        round_.edges = first.edges
        steps.sync(round_)
        return round_

    return again


def test_the_add_ons_are_applied_labelled_and_recorded(rounds: Rounds, kube: MemoryKube) -> None:
    addon = an_addon("dns", an_object("one", data={"a": "b"}), an_object("two"))

    round_ = rounds(addon)

    assert round_.report.sentence() == "addons dns: 2 objects applied"
    assert label_of(kube.objects[ONE]) == "dns"
    assert from_tree(kube.objects[RECORD])["dns"].refs == addon.refs


def test_they_are_looked_at_again_after_a_while_and_put_right(rounds: Rounds, kube: MemoryKube) -> None:
    addon = an_addon("dns", an_object("one", data={"a": "b"}))
    rounds(addon)
    kube.objects[ONE]["data"] = {"a": "changed by hand"}

    soon, later = rounds(passed=EVERY - 1), rounds(passed=2)

    assert (soon.report.sentence(), later.report.sentence()) == ("", "addons dns: 1 object applied")
    assert kube.objects[ONE]["data"] == {"a": "b"}


def test_a_second_look_changes_nothing(rounds: Rounds, kube: MemoryKube) -> None:
    rounds(an_addon("dns", an_object("one"), an_object("two")))
    before = {path: tree["metadata"]["resourceVersion"] for path, tree in kube.objects.items()}

    round_ = rounds(passed=EVERY)

    assert {path: tree["metadata"]["resourceVersion"] for path, tree in kube.objects.items()} == before
    assert round_.report.sentence() == ""


def test_what_left_an_add_on_is_taken_away(rounds: Rounds, kube: MemoryKube) -> None:
    rounds(an_addon("dns", an_object("one"), an_object("two")))

    round_ = rounds(an_addon("dns", an_object("two")))

    assert ONE not in kube.objects
    assert TWO in kube.objects
    assert round_.report.sentence() == ("addons dns: ConfigMap kube-system/one taken away: it is no longer part of it")
    assert from_tree(kube.objects[RECORD])["dns"].refs == (ref(an_object("two")),)


def test_what_somebody_made_under_the_same_name_since_is_not_taken_away(rounds: Rounds, kube: MemoryKube) -> None:
    rounds(an_addon("dns", an_object("one"), an_object("two")))
    del kube.objects[ONE]
    kube.put(ONE, an_object("one", data={"whose": "theirs"}))

    rounds(an_addon("dns", an_object("two")))

    assert kube.objects[ONE]["data"] == {"whose": "theirs"}


def test_a_lost_record_takes_nothing_away_and_is_written_anew(rounds: Rounds, kube: MemoryKube) -> None:
    rounds(an_addon("dns", an_object("one"), an_object("two")))
    del kube.objects[RECORD]

    rounds(an_addon("dns", an_object("two")))

    assert ONE in kube.objects
    assert from_tree(kube.objects[RECORD])["dns"].refs == (ref(an_object("two")),)


def test_an_object_of_somebody_else_is_told_in_every_round(rounds: Rounds, kube: MemoryKube) -> None:
    kube.put(ONE, an_object("one", data={"whose": "theirs"}))
    first = rounds(an_addon("dns", an_object("one", data={"a": "b"})))

    second = rounds(passed=10)

    assert kube.objects[ONE]["data"] == {"whose": "theirs"}
    assert [each.about for each in first.report.person] == ["ConfigMap kube-system/one"]
    assert first.report.person == second.report.person


def test_one_that_is_refused_keeps_neither_the_others_nor_what_it_replaces_from_being_there(
    rounds: Rounds, kube: MemoryKube
) -> None:
    rounds(an_addon("dns", an_object("one")))
    kube.refuse.add(TWO)

    round_ = rounds(an_addon("dns", an_object("two"), an_object("three")))

    assert round_.report.person[0].text.startswith("refused: ")
    assert ONE in kube.objects  # what replaces it is not there yet
    assert "/api/v1/namespaces/kube-system/configmaps/three" in kube.objects

    kube.refuse.clear()
    assert rounds(passed=AGAIN - 1).report.person == round_.report.person
    assert rounds(passed=2).report.settled
    assert ONE not in kube.objects
    assert TWO in kube.objects


def test_a_kind_that_is_not_known_yet_is_waited_for(rounds: Rounds, kube: MemoryKube) -> None:
    round_ = rounds(an_addon("shop", an_object("w", "Widget"), an_object("one")))

    assert [each.about for each in round_.report.waits] == ["Widget.example.com kube-system/w"]
    assert ONE in kube.objects


@pytest.mark.parametrize("presence", [{"elected": False}, {"serving": []}, {"serving": ["i-2"]}])
def test_who_is_not_elected_or_whose_api_server_is_not_ready_writes_no_add_ons(
    rounds: Rounds, kube: MemoryKube, presence: dict[str, Any]
) -> None:
    rounds(an_addon(), **presence)

    assert kube.writes() == []


def test_who_is_elected_again_looks_at_once(rounds: Rounds, kube: MemoryKube) -> None:
    rounds(an_addon("dns", an_object("one")))
    rounds(elected=False)
    del kube.objects[ONE]

    rounds(elected=True)

    assert ONE in kube.objects


def test_a_server_that_does_not_answer_is_waited_for(rounds: Rounds, kube: MemoryKube) -> None:
    kube.down = True

    round_ = rounds(an_addon())

    assert [each.text for each in round_.report.waits] == ["the API server does not answer"]
    assert (round_.report.person, round_.report.bugs) == ([], [])


def test_every_master_marks_its_own_node(rounds: Rounds, kube: MemoryKube) -> None:
    kube.put(NODE, {"metadata": {"name": "i-1", "labels": {"mine": "x"}}, "spec": {}})

    round_ = rounds(elected=False)

    assert kube.objects[NODE]["metadata"]["labels"] == {"mine": "x", "node-role.kubernetes.io/control-plane": ""}
    assert kube.objects[NODE]["spec"]["taints"] == [
        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    ]
    assert round_.report.did[0].about == "i-1"
    assert rounds().report.did == []


def test_a_mark_that_somebody_undid_in_that_very_moment_is_set_in_the_next_round(
    rounds: Rounds, kube: MemoryKube
) -> None:
    kube.put(NODE, {"metadata": {"name": "i-1"}, "spec": {}})
    rounds()
    kube.put(NODE, {"metadata": {"name": "i-1"}, "spec": {}})

    assert [each.about for each in rounds().report.did] == ["i-1"]


def test_a_node_that_is_not_there_yet_is_no_trouble_and_is_looked_for_again(rounds: Rounds, kube: MemoryKube) -> None:
    assert rounds().report.settled
    kube.put(NODE, {"metadata": {"name": "i-1"}, "spec": {}})

    assert rounds().report.did != []


def test_the_elected_master_marks_the_nodes_that_are_machines_of_ours_and_no_others(
    rounds: Rounds, kube: MemoryKube
) -> None:
    for name in ("n-1", "stranger"):
        kube.put(f"/api/v1/nodes/{name}", {"metadata": {"name": name}, "spec": {}})

    round_ = rounds()

    assert kube.objects["/api/v1/nodes/n-1"]["metadata"]["labels"] == {"node-role.kubernetes.io/node": ""}
    assert "labels" not in kube.objects["/api/v1/nodes/stranger"]["metadata"]
    assert [each.about for each in round_.report.did] == ["n-1"]
    assert rounds(passed=60).report.did == []


@pytest.mark.parametrize("why", [ApiError(422, "Invalid", "a bad label"), TryLater("failed calling webhook")])
def test_a_node_that_cannot_be_marked_is_told_and_keeps_no_other_waiting(
    rounds: Rounds, kube: MemoryKube, why: ProtokubeError
) -> None:
    rounds().edges.machines = Machines(a_machine(), *(a_machine(name, group="nodes") for name in ("n-1", "n-2")))
    for name in ("n-1", "n-2"):
        kube.put(f"/api/v1/nodes/{name}", {"metadata": {"name": name}, "spec": {}})
    kube.fails["merge", "/api/v1/nodes/n-1"] = why

    first, second = rounds(passed=60), rounds(passed=60)

    assert [each.about for each in first.report.did] == ["n-2"]
    for round_ in (first, second):
        notes = round_.report.waits if isinstance(why, TryLater) else round_.report.person
        assert [(each.about, each.text) for each in notes] == [("n-1", why.message)]

    kube.fails.clear()
    assert [each.about for each in rounds().report.did] == ["n-1"]
    assert rounds().report.settled


def test_any_number_of_nodes_that_cannot_be_marked_leaves_some_of_a_round_to_the_others(
    rounds: Rounds, kube: MemoryKube
) -> None:
    names = [f"n-{number:02}" for number in range(nodes.MOST + 2)]
    rounds().edges.machines = Machines(a_machine(), *(a_machine(name, group="nodes") for name in names))
    for name in names:
        kube.put(f"/api/v1/nodes/{name}", {"metadata": {"name": name}, "spec": {}})
        kube.fails["merge", f"/api/v1/nodes/{name}"] = ApiError(422, "Invalid", "a bad label")
    del kube.fails["merge", f"/api/v1/nodes/{names[-1]}"]

    first, second = rounds(passed=60), rounds()

    assert (len(first.report.person), first.report.did) == (nodes.MOST, [])
    assert [each.about for each in second.report.did] == [names[-1]]


def test_who_is_not_elected_leaves_the_nodes_of_others_alone(rounds: Rounds, kube: MemoryKube) -> None:
    kube.put("/api/v1/nodes/n-1", {"metadata": {"name": "n-1"}, "spec": {}})

    rounds(elected=False)

    assert kube.writes() == []


def test_a_kubelets_request_is_approved_and_a_wrong_one_is_told_and_left_alone(
    rounds: Rounds, kube: MemoryKube
) -> None:
    for name, node in NODES.items():
        kube.put(f"/api/v1/nodes/{name}", {"metadata": {"name": name}, **node})
    right, wrong = a_request(), a_request(username="system:node:node-9")
    kube.put(f"{approve.PATH}/right", {**right, "metadata": {"name": "right"}})
    kube.put(f"{approve.PATH}/wrong", {**wrong, "metadata": {"name": "wrong"}})

    round_ = rounds()

    (condition,) = kube.objects[f"{approve.PATH}/right"]["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Approved", "True")
    assert "status" not in kube.objects[f"{approve.PATH}/wrong"]
    assert [each.about for each in round_.report.did] == ["right"]
    assert [(each.about, each.text) for each in round_.report.waits] == [
        ("", "not approved: wrong for system:node:node-9 (there is no Node node-9)")
    ]


def put_token(kube: MemoryKube, clock: Any, node: str, hours: int = 1) -> None:
    expires = dt.datetime.fromtimestamp(clock.now(), dt.UTC) + dt.timedelta(hours=hours)
    tree = tokens.to_secret(tokens.Token(id="abcdef", secret="x" * 16, expires=expires, node=node))
    data = {name: b64encode(text.encode()).decode() for name, text in tree.pop("stringData").items()}
    kube.put(tokens.secret_path("abcdef"), {**tree, "data": data})


def test_a_new_node_gets_the_certificate_that_its_token_was_made_for_and_no_other(
    rounds: Rounds, kube: MemoryKube
) -> None:
    put_token(kube, rounds(elected=False).edges.clock, "node-1")
    other = a_first_request(content("system:node:node-2", dns=(), ips=()), "other")
    for request in (a_first_request(name="own"), other):
        kube.put(f"{approve.PATH}/{request['metadata']['name']}", request)

    round_ = rounds(elected=True)

    assert [(each.about, each.text) for each in round_.report.did] == [("own", "approved for system:bootstrap:abcdef")]
    assert "other for system:bootstrap:abcdef (its token was created for node-1" in round_.report.waits[0].text
    (condition,) = kube.objects[f"{approve.PATH}/own"]["status"]["conditions"]
    assert condition["message"] == "its token was created for this node"


@pytest.mark.parametrize(("node", "hours", "words"), [("", 0, "no such token"), ("node-1", -1, "has expired")])
def test_a_new_node_whose_token_is_gone_or_old_is_told_so(
    rounds: Rounds, kube: MemoryKube, node: str, hours: int, words: str
) -> None:
    if node:
        put_token(kube, rounds(elected=False).edges.clock, node, hours)
    kube.put(f"{approve.PATH}/own", a_first_request(name="own"))

    round_ = rounds(elected=True)

    assert round_.report.did == []
    assert words in round_.report.waits[0].text


def test_a_token_for_a_name_that_a_master_has_admits_nobody(rounds: Rounds, kube: MemoryKube) -> None:
    put_token(kube, rounds(elected=False).edges.clock, "node-1")
    kube.put("/api/v1/nodes/node-1", {"metadata": {"name": "node-1", "labels": {CONTROL_PLANE: ""}}})
    kube.put(f"{approve.PATH}/own", a_first_request(name="own"))

    assert "node-1 is a master" in rounds(elected=True).report.waits[0].text


def test_what_nodes_ask_for_to_renew_their_certificates_is_left_to_kubernetes(rounds: Rounds, kube: MemoryKube) -> None:
    kube.put(f"{approve.PATH}/own", a_first_request(name="own", username="system:node:node-1", groups=["system:nodes"]))

    round_ = rounds()

    assert (round_.report.did, round_.report.waits) == ([], [])


def test_a_flood_of_requests_is_worked_off_round_by_round(rounds: Rounds, kube: MemoryKube) -> None:
    for name, node in NODES.items():
        kube.put(f"/api/v1/nodes/{name}", {"metadata": {"name": name}, **node})
    for number in range(70):
        kube.put(f"{approve.PATH}/r{number}", {**a_request(), "metadata": {"name": f"r{number}"}})

    assert [len(rounds().report.did) for _ in range(3)] == [50, 20, 0]


def test_wrong_requests_that_stay_open_hide_no_right_one_and_are_told_in_one_sentence(
    rounds: Rounds, kube: MemoryKube
) -> None:
    for name, node in NODES.items():
        kube.put(f"/api/v1/nodes/{name}", {"metadata": {"name": name}, **node})
    for number in range(60):
        wrong = a_request(username=f"system:node:ghost-{number}")
        kube.put(f"{approve.PATH}/a{number:02}", {**wrong, "metadata": {"name": f"a{number:02}"}})
    kube.put(f"{approve.PATH}/right", {**a_request(), "metadata": {"name": "right"}})

    round_ = rounds()

    assert [each.about for each in round_.report.did] == ["right"]
    (wait,) = round_.report.waits
    assert wait.text.startswith("not approved: a00 for system:node:ghost-0 (there is no Node ghost-0), a01 for ")
    assert wait.text.endswith(" and 57 others")


def test_who_asks_a_thousand_times_delays_nobody_else() -> None:
    def asked(name: str, username: str, second: int) -> dict[str, Any]:
        created = f"2026-03-01T12:00:{second:02}Z"
        return {**a_request(username=username), "metadata": {"name": name, "creationTimestamp": created}}

    flood = [asked(f"a{number}", "system:node:evil", number) for number in range(9)]
    others = [asked("old", "system:node:b", 1), asked("new", "system:node:b", 2), asked("only", "system:node:c", 3)]
    names = [each["metadata"]["name"] for each in approvals.fair_order([*flood, *others])]

    assert names[:5] == ["a8", "only", "new", "a7", "old"]
    assert sorted(names) == sorted(each["metadata"]["name"] for each in (*flood, *others))


def test_approvals_end_for_this_round_when_they_take_long(rounds: Rounds, kube: MemoryKube) -> None:
    for name, node in NODES.items():
        kube.put(f"/api/v1/nodes/{name}", {"metadata": {"name": name}, **node})
    for number in range(9):
        kube.put(f"{approve.PATH}/r{number}", {**a_request(), "metadata": {"name": f"r{number}"}})
    edges = rounds(elected=False).edges
    edges.kube = Slow(kube, cast(HostClock, edges.clock), approvals.SECONDS / 2)

    assert [len(rounds(elected=True).report.did) for _ in range(4)] == [3, 3, 3, 0]


def test_a_name_is_not_reserved_because_a_certificate_of_the_node_itself_has_it(tmp_path: Path) -> None:
    plain = from_config(completed(cloud="local", name="laptop", masters=1))
    own = nodekeys.certificates(a_machine("m"))
    round_ = a_round(tmp_path, wanted=replace(plain, certificates={**plain.certificates, **own}))

    assert "api.internal.laptop" in approvals.reserved(round_)
    assert not {"m", "10.0.0.1"} & approvals.reserved(round_)


def test_names_of_the_control_plane_are_given_to_no_node(rounds: Rounds, kube: MemoryKube) -> None:
    liar = {"status": {"addresses": [{"type": "Hostname", "address": "api.internal.laptop"}]}}
    kube.put("/api/v1/nodes/node-1", {"metadata": {"name": "node-1"}, **liar})
    request = a_request(content(dns=("api.internal.laptop",), ips=()))
    kube.put(f"{approve.PATH}/r", {**request, "metadata": {"name": "r"}})

    round_ = rounds()

    assert round_.report.did == []
    assert "api.internal.laptop is not the Node's alone" in round_.report.waits[0].text
