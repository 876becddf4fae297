"""What a name means, and where that is while hosts come and go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import NotFound
from protokube.local.logs.known import Holder, Known, KnownHost
from protokube.local.logs.places import Place
from protokube.local.logs.targets import Target, Trail, begin, follow, resolve

SOURCES = {"agent", "etcd", "kube-apiserver", "kubelet"}


def a_host(name: str, number: int, *, alive: bool = True, master: bool = True) -> KnownHost:
    return KnownHost(name=name, group=name.rpartition("-")[0], number=number, alive=alive, master=master)


A, B, C = (a_host(f"master-{short}-{number}", number) for number, short in enumerate("abc", 1))
MEMBERS = {"main/a": Holder(A.name, A.name), "main/b": Holder(B.name, B.name), "events/a": Holder(C.name)}
KNOWN = Known((A, B, C), MEMBERS)


@pytest.mark.parametrize(
    ("word", "target"),
    [
        (A.name, Target("host", A.name, "agent")),
        (f"{A.name}/kubelet", Target("host", A.name, "kubelet")),
        ("main/a", Target("member", "main/a", "etcd")),
        ("a", Target("member", "main/a", "etcd")),
        ("etcd-b", Target("member", "main/b", "etcd")),
        ("etcd-events-a", Target("member", "events/a", "etcd-events")),
        ("kube-apiserver", Target("component", "kube-apiserver", "kube-apiserver")),
        ("cloud", Target("cloud", "cloud", "cloud")),
    ],
)
def test_a_name_is_a_host_a_member_a_component_or_the_cloud(word: str, target: Target) -> None:
    assert resolve(word, KNOWN, SOURCES, ["cloud"]) == target


def test_a_host_without_an_agent_is_its_kubelet() -> None:
    known = Known((a_host("nodes-1", 1, master=False),))

    assert resolve("nodes-1", known, SOURCES).source == "kubelet"


@pytest.mark.parametrize(
    ("word", "hint"),
    [("kube-apisrver", "kube-apiserver"), ("main/aa", "main/a"), ("agents", "agent"), ("master-a", A.name),
     (f"{A.name}/kublet", "kubelet")],
)  # fmt: skip
def test_a_mistyped_name_is_told_with_the_one_that_was_meant(word: str, hint: str) -> None:
    with pytest.raises(NotFound) as caught:
        resolve(word, KNOWN, SOURCES)

    assert caught.value.hint == f"did you mean `{hint}`?"


def test_a_member_is_followed_to_whoever_holds_its_volume() -> None:
    trail, said = begin(Target("member", "main/a", "etcd"), KNOWN)
    assert (trail.places, said) == ((Place(A.name, "etcd"),), [])
    trail, said = follow(trail, replace(KNOWN, members={"main/a": Holder("", A.name)}))
    assert (trail.places, said) == ((Place(A.name, "etcd"),), [f"nobody holds main/a now; it was on {A.name}"])
    trail, said = follow(trail, replace(KNOWN, members={"main/a": Holder("", A.name)}))
    assert said == []
    trail, said = follow(trail, replace(KNOWN, members={"main/a": Holder(B.name, A.name)}))
    assert (trail.places, said) == ((Place(B.name, "etcd"),), [f"main/a is on {B.name} now"])


def test_a_member_that_nobody_holds_is_where_it_was_last() -> None:
    trail, said = begin(Target("member", "main/a", "etcd"), Known((A,), {"main/a": Holder("", A.name)}))

    assert trail.places == (Place(A.name, "etcd"),)
    assert said == [f"nobody holds main/a now; it was on {A.name}"]


def test_a_member_that_nobody_ever_held_is_waited_for() -> None:
    trail, said = begin(Target("member", "main/a", "etcd"), Known((A,), {"main/a": Holder()}))
    assert (trail.places, said) == ((), ["nobody holds main/a now"])

    trail, said = follow(trail, KNOWN)
    assert (trail.places, said) == ((Place(A.name, "etcd"),), [f"main/a is on {A.name} now"])


def test_a_host_that_is_gone_is_replaced_by_the_next_of_its_group_and_by_no_other() -> None:
    trail, _ = begin(Target("host", A.name, "agent"), KNOWN)
    gone = replace(A, alive=False)
    other, successor = a_host("master-b-4", 4), a_host("master-a-5", 5)

    trail, said = follow(trail, Known((gone, B, C, other)))
    assert (trail.places, said) == ((Place(A.name, "agent"),), [f"{A.name} is gone"])
    trail, said = follow(trail, Known((gone, B, C, other, successor)))
    assert (trail.places, said) == ((Place(successor.name, "agent"),), [f"{successor.name} replaces {A.name}"])


def test_of_a_cluster_that_is_off_a_component_is_where_it_ran_last() -> None:
    hosts = [replace(A, alive=False), replace(a_host("master-a-7", 7), alive=False), replace(B, alive=False)]
    trail, _ = begin(Target("component", "agent", "agent"), Known(tuple(hosts)))

    assert {each.host for each in trail.places} == {"master-a-7", B.name}


@given(st.lists(st.sampled_from([*"abc", "look"]), max_size=25))
def test_whatever_hosts_die_every_living_one_is_followed_and_each_death_is_said_once(steps: list[str]) -> None:
    hosts = {each.name: each for each in (A, B, C)}
    number, said = 10, list[str]()
    trails: list[Trail] = [
        begin(Target("component", "agent", "agent"), KNOWN)[0],
        begin(Target("host", A.name, "agent"), KNOWN)[0],
    ]
    followed = [A.name]
    for step in steps:
        if step == "look":
            known = Known(tuple(hosts.values()))
            for index, trail in enumerate(trails):
                trails[index], notes = follow(trail, known)
                said += [f"{index} {each}" for each in notes]
            followed.append(trails[1].places[0].host)
            assert {each.host for each in trails[0].places} == {each.name for each in known.living}
            continue
        for name, host in hosts.items():
            if host.group == f"master-{step}" and host.alive:
                hosts[name] = replace(host, alive=False)
        number += 1
        hosts[f"master-{step}-{number}"] = a_host(f"master-{step}-{number}", number)

    assert len(said) == len(set(said))
    assert [hosts[each].number for each in followed] == sorted(hosts[each].number for each in followed)
    assert {hosts[each].group for each in followed} == {A.group}
