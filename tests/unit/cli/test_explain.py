"""`protokube explain`: why a volume, a member or a name waits, or where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.command import Call
from builders.view import (
    CLUSTER,
    FakeCloud,
    ShortFolder,
    a_disk,
    a_generation,
    a_note,
    a_view,
    an_agent,
    but,
    cloud_rows,
    write_state,
)
from protokube.cli.render.explain_member import explain_member
from protokube.cli.render.explain_record import explain_record
from protokube.cli.render.explain_volume import explain_volume
from protokube.errors import ExitCode, InvalidRequest
from protokube.records import Record
from protokube.view.cluster import ClusterView
from protokube.view.next import next_for_volume

VIEW = a_view()
REFUSED = a_note("vol-aaaa is not blank", about="main/a", hint="check the tags of vol-aaaa")


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        yield folder


def test_a_volume_in_order_tells_whose_it_is_and_that_nothing_comes_next() -> None:
    assert explain_volume(VIEW, "vol-aaaa").lines() == [
        "vol-aaaa is the home of etcd-a",
        f"  member       main/a, as its tags say; etcd-a.internal.{CLUSTER}",
        "  size         20 GiB",
        "  holder       master-0 (10.77.0.11), up for 5 min",
        "  phase        serving",
        "  mark         formed: it is part of a cluster that was formed",
        "  epoch        1, written by master-0",
        "  record       a founder of generation g1, closed",
        "  on the disk  epoch 1, holder master-0, data present",
        "  etcd         going on; its manifest is linked",
        "next: nothing: it is in order",
    ]


def test_what_agents_said_about_a_volume_is_put_together_whoever_said_it() -> None:
    agents = (
        an_agent(
            0, did=(a_note("attached vol-aaaa", about="main/a"),), waits=(a_note("etcd", about="main/a", lasted=5),)
        ),
        an_agent(1, did=(a_note("went to another master", about="main/a"), a_note("marked", about="main/b"))),
        an_agent(2, bugs=(a_note("KeyError about vol-aaaa", step="names"),)),
    )
    explanation = explain_volume(a_view(agents=agents), "vol-aaaa")

    assert explanation.reports == (
        "master-0: attached vol-aaaa",
        "master-1: went to another master",
        "master-0 waits, for 7 s: etcd",
        "master-2 has a bug: KeyError about vol-aaaa",
    )


def test_a_name_inside_another_word_is_not_meant() -> None:
    agents = (an_agent(0, person=(a_note("there is no authority 'etcd-a-client', nor vol-aaaab", step="keys"),)),)
    mentions = (an_agent(0, person=(a_note("the name of etcd-a: refused", step="names"),)),)

    assert explain_member(a_view(agents=agents), "a").reports == ()
    assert explain_member(a_view(agents=mentions), "a").reports == (
        "master-0 needs a person: the name of etcd-a: refused",
    )


def test_a_volume_without_an_identity_is_told_as_that() -> None:
    mounted = replace(
        VIEW.agents[0].mounted[0], epoch=None, holder=None, data="original", doing="refused", why="x", linked=False
    )
    facts = dict(explain_volume(a_view(agents=(an_agent(0, mounted=(mounted,)),)), "vol-aaaa").facts)

    assert facts["on the disk"] == "no identity, data original"
    assert facts["etcd"] == "refused: x; its manifest is not linked"


def test_what_a_person_has_to_do_comes_next() -> None:
    view = a_view(
        members=but(VIEW.members, 0, healthy=False), agents=(an_agent(0, person=(REFUSED,), mounted=(), phases={}),)
    )
    explanation = explain_volume(view, "vol-aaaa")

    assert explanation.reports == ("master-0 needs a person: vol-aaaa is not blank",)
    assert explanation.next == "a person acts: check the tags of vol-aaaa"


STAGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "free": (
        {"attached_to": None, "phase": "free"},
        {"disks": but(VIEW.disks, 0, attached_to=None, phase="free")},
        "a master that holds no member of main attaches it in its next round: master-0",
    ),
    "free and nobody there": (
        {"attached_to": None, "phase": "free"},
        {"hosts": ()},
        "nothing, until a host runs; it then attaches the volume",
    ),
    "held by the dead": (
        {"attached_to": "master-9"},
        {},
        "the cloud takes it from master-9, which is gone; then a master that holds no member of main attaches it",
    ),
    "not reported yet": ({"phase": ""}, {}, "master-0 reports in its next round how far it is"),
    "attached": (
        {"phase": "attached"},
        {},
        "its device is proven to be this volume and read; then it is formatted, if that is allowed, and mounted",
    ),
    "mounted": ({"phase": "mounted"}, {}, "its manifest is linked once its name answers with the holder's address"),
    "refused": ({"phase": "refused"}, {}, "nothing, until a person acts"),
    "forming": ({"mark": "forming"}, {}, "it is marked formed once its cluster has a quorum and it has data"),
    "not healthy": (
        {},
        {"members": but(VIEW.members, 0, healthy=False, why="timed out")},
        "the kubelet of master-0 starts etcd, and it finds its peers; so far: timed out",
    ),
    "in order": ({}, {}, "nothing: it is in order"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_says_what_comes_next(stage: str) -> None:
    disk, changes, sentence = STAGES[stage]

    assert str(next_for_volume(a_view(**changes), a_disk("a", **disk))) == sentence


def of_record(generation: Any, mark: str = "formed") -> dict[str, str]:
    view = a_view(generations={"main": generation}, disks=but(VIEW.disks, 0, mark=mark))
    return dict(explain_volume(view, "vol-aaaa").facts)


def test_the_record_says_where_a_volume_comes_from() -> None:
    replaced = a_generation(founders={"a": "vol-old"}, replacements={"a": "vol-aaaa"})

    assert of_record(None)["record"] == "missing or unreadable: nothing may be founded"
    assert of_record(a_generation(open=True))["record"] == "a founder of generation g1, still open"
    assert of_record(replaced)["record"] == "made in place of vol-old in generation g1, closed"
    assert of_record(a_generation(founders={"a": "vol-x"}))["record"] == "not in generation g1: it is never formatted"


@pytest.mark.parametrize(
    ("mark", "meaning"),
    [
        ("", "none: nothing of ours was on it yet"),
        ("formatting:1234", "formatting: a format was begun"),
        ("forming", "forming: it has an identity, its cluster is not formed yet"),
        ("strange", "strange"),
    ],
)
def test_a_mark_is_said_in_words(mark: str, meaning: str) -> None:
    assert of_record(a_generation(), mark)["mark"] == meaning


def test_a_volume_nobody_holds_names_its_last_holder() -> None:
    free = a_view(disks=but(VIEW.disks, 0, attached_to=None, phase="free"))
    fresh = a_view(disks=but(VIEW.disks, 0, attached_to=None, phase="free", last_holder="", epoch=0))

    assert dict(explain_volume(free, "vol-aaaa").facts)["holder"] == "nobody; the last was master-0"
    assert dict(explain_volume(fresh, "vol-aaaa").facts)["holder"] == "nobody"
    assert dict(explain_volume(fresh, "vol-aaaa").facts)["epoch"] == "none: nobody has held it yet"


# Members.


@pytest.mark.parametrize("name", ["a", "main/a", "etcd-a", f"etcd-a.internal.{CLUSTER}"])
def test_a_member_tells_its_volume_host_name_and_state(name: str) -> None:
    assert explain_member(VIEW, name).lines() == [
        "etcd-a is member main/a",
        "  volume      vol-aaaa, serving, epoch 1",
        "  host        master-0 (10.77.0.11), up for 5 min",
        f"  name        etcd-a.internal.{CLUSTER} -> 10.77.0.11",
        "  reached at  https://127.0.0.1:4100",
        "  etcd        leader",
        "  id          a0 of cluster c1",
        "  state       term 2, revision 10, etcd 3.5.1",
        "  database    20 KiB",
        "next: nothing: it is in order",
    ]


def member_next(**changes: Any) -> str:
    return explain_member(a_view(members=but(VIEW.members, 0, **changes)), "a").next


def test_a_member_that_is_not_in_order_says_what_comes_next() -> None:
    assert member_next(learner=True) == "it is made a voter once it has caught up"
    assert member_next(healthy=False) == "the kubelet of master-0 starts etcd, and it finds its peers"
    assert member_next(volume=None, healthy=False) == (
        "master-0, the elected master, makes a new volume for it once several complete lists lacked the old one"
    )
    mounting = a_view(
        members=but(VIEW.members, 0, healthy=False, id=0, why="no answer"), disks=but(VIEW.disks, 0, phase="mounted")
    )
    explanation = explain_member(mounting, "a")
    assert explanation.next == "its manifest is linked once its name answers with the holder's address"
    assert dict(explanation.facts)["etcd"] == "not healthy: no answer"
    assert "id" not in dict(explanation.facts)


# Names.


def test_the_name_of_a_member_tells_who_wants_it_and_who_claimed_it() -> None:
    assert explain_record(VIEW, f"etcd-a.internal.{CLUSTER}.").lines() == [
        f"etcd-a.internal.{CLUSTER} is the name of etcd-a",
        "  value       10.77.0.11",
        "  ttl         5 s",
        "  wanted by   the agent of master-0, which holds vol-aaaa with epoch 1",
        "  claimed by  master-0 with epoch 1",
        "next: nothing: it is in order",
    ]


def record_next(name: str, **changes: Any) -> tuple[str, str]:
    explanation = explain_record(a_view(**changes), name)
    return dict(explanation.facts)["wanted by"], explanation.next


def test_a_name_that_is_not_right_yet_says_who_will_mend_it() -> None:
    nobody: dict[str, Any] = {
        "disks": but(VIEW.disks, 0, attached_to=None),
        "members": but(VIEW.members, 0, host=None),
    }

    assert record_next("etcd-a", **nobody) == (
        "nobody: no master holds its volume",
        "nothing, until a master attaches its volume; that master points it at itself",
    )
    assert record_next("etcd-a", records=())[1] == "master-0 points it at 10.77.0.11"


def test_the_names_of_the_api_are_wanted_by_the_elected_master() -> None:
    name = f"api.internal.{CLUSTER}"

    assert record_next(name) == (
        "the elected master (master-0): the internal addresses of live masters",
        "nothing: it is in order",
    )
    assert record_next(name, records=(), agents=()) == (
        "the elected master, and none is known to be elected: the internal addresses of live masters",
        "nothing, until a master is elected; it writes the name",
    )
    assert record_next(f"api.{CLUSTER}", agents=())[0] == (
        "the elected master, and none is known to be elected:"
        " the external addresses (else internal ones) of live masters"
    )


def test_a_name_that_nobody_of_us_wants_is_only_told() -> None:
    other = Record(name=f"www.{CLUSTER}", type="A", values=("10.0.0.1",), ttl=60)
    explanation = explain_record(a_view(records=(*VIEW.records, other)), f"www.{CLUSTER}")

    assert explanation.title == f"www.{CLUSTER} is in the zone"
    assert dict(explanation.facts)["wanted by"] == "unknown"


# What is not there.


@pytest.mark.parametrize(
    ("ask", "name", "hint"),
    [
        (explain_volume, "vol-aaab", "did you mean `vol-aaaa`?"),
        (explain_member, "etcd-aa", "did you mean `etcd-a`?"),
        (explain_record, f"etcd-a.intern.{CLUSTER}", f"did you mean `etcd-a.internal.{CLUSTER}`?"),
        (explain_volume, "x", "protokube status"),
    ],
)
def test_what_is_not_there_is_said_with_what_was_probably_meant(ask: Any, name: str, hint: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ask(VIEW, name)

    assert caught.value.hint == hint
    assert repr(name) in caught.value.message


def test_of_an_empty_cluster_nothing_can_be_explained() -> None:
    empty = replace(VIEW, disks=(), members=())
    with pytest.raises(InvalidRequest) as caught:
        explain_volume(empty, "vol-aaaa")

    assert caught.value.saw == "none at all"


# The command.


@pytest.fixture
def cluster(state: Path) -> Iterator[ClusterView]:
    paths = write_state(state, VIEW)
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        yield VIEW


def test_only_three_kinds_of_things_are_explained(call: Call, state: Path) -> None:
    answer = call("explain", "host", "master-0")

    assert answer.code == ExitCode.INVALID
    assert "'volume', 'member', 'record'" in answer.err
