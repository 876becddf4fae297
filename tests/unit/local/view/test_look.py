"""One look at a local cluster: what is ready, what is lacking, and what can be seen while parts are absent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.config import completed
from builders.view import (
    CLUSTER,
    ShortFolder,
    a_disk,
    a_generation,
    a_host,
    a_member,
    a_note,
    a_view,
    an_agent,
    but,
    listed,
    names_of,
    status_file,
    write_state,
)
from protokube.launch.derive import from_config
from protokube.launch.machine import to_tree
from protokube.local.view import sources
from protokube.local.view.cluster import ClusterView
from protokube.local.view.look import disk_views, expect
from protokube.local.view.values import AgentView, DaemonView, MemberView


@pytest.fixture
def state() -> Iterator[Path]:
    with ShortFolder() as folder:
        yield folder


def undated(agent: AgentView) -> AgentView:
    """Without its age, which a busy machine makes greater."""
    return replace(agent, age=0.0)


def test_a_cluster_in_which_everything_is_in_order_is_ready() -> None:
    view = a_view()

    assert view.lacks == ()
    assert view.ready


VIEW = a_view()
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "the cloud does not run": (
        {"daemon": DaemonView(alive=False, why="Connection refused")},
        "the local cloud does not run: Connection refused",
    ),
    "no member is known": ({"members": ()}, "nothing is known of its members yet"),
    "a member does not answer": (
        {"members": but(VIEW.members, 1, healthy=False, why="timed out")},
        "etcd-b on master-1 is not healthy: timed out",
    ),
    "a member has no volume": ({"members": but(VIEW.members, 1, volume=None, host=None)}, "etcd-b has no volume"),
    "a volume is free": ({"members": but(VIEW.members, 1, host=None)}, "vol-bbbb of etcd-b is attached to nobody"),
    "a member is a learner": ({"members": but(VIEW.members, 2, learner=True)}, "etcd-c on master-2 is still a learner"),
    "a member is of another cluster": (
        {"members": but(VIEW.members, 2, cluster_id=0xDD)},
        "the members of main are of different clusters: etcd-a c1, etcd-b c1, etcd-c dd",
    ),
    "two leaders": ({"members": but(VIEW.members, 2, leader_id=0xA2)}, "the members of main do not follow one leader"),
    "a leader that is nobody": (
        {"members": tuple(replace(each, leader_id=0xFF) for each in VIEW.members)},
        "the leader of main is none of its members that answer",
    ),
    "two lists": (
        {"members": but(VIEW.members, 0, listed=listed(("a", "b")))},
        "the members of main do not list the same members",
    ),
    "no record": ({"generations": {}}, "the generation record of main is missing or cannot be read"),
    "a record that cannot be read": (
        {"generations": {"main": None}},
        "the generation record of main is missing or cannot be read",
    ),
    "creation is open": ({"generations": {"main": a_generation(open=True)}}, "the creation of main is not closed yet"),
    "a volume is not formed": (
        {"disks": but(VIEW.disks, 0, mark="forming")},
        "vol-aaaa (main/a) is marked forming, not formed",
    ),
    "a volume is being formatted": (
        {"disks": but(VIEW.disks, 0, mark="formatting:12ab")},
        "vol-aaaa (main/a) is marked formatting, not formed",
    ),
    "a volume is not marked": (
        {"disks": but(VIEW.disks, 0, mark="")},
        "vol-aaaa (main/a) is marked nothing, not formed",
    ),
    "a name points elsewhere": (
        {"records": names_of({"a": "10.77.0.99", "b": "10.77.0.12", "c": "10.77.0.13"})},
        f"etcd-a.internal.{CLUSTER} points at 10.77.0.99, not at master-0 (10.77.0.11)",
    ),
    "the API's name points at the dead": (
        {"hosts": (), "members": VIEW.members},
        f"api.internal.{CLUSTER} points at 10.77.0.11, 10.77.0.12, 10.77.0.13, where no master lives",
    ),
    "the API has no name": (
        {"records": tuple(each for each in VIEW.records if not each.name.startswith("api."))},
        f"api.internal.{CLUSTER} has no address yet",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_one_thing_out_of_order_is_enough_not_to_be_ready_and_is_said(what: str) -> None:
    changes, sentence = BROKEN[what]
    view = a_view(**changes)

    assert not view.ready
    assert sentence in view.lacks


def test_only_the_name_inside_has_to_have_an_address() -> None:
    assert not any(each.name == f"api.{CLUSTER}" for each in a_view().records)
    assert a_view().ready


def test_two_etcd_clusters_have_a_leader_and_a_cluster_id_each() -> None:
    events = tuple(
        replace(each, member=each.member.replace("main", "events"), id=each.id + 0x10, cluster_id=0xE1, leader_id=0xB1)
        for each in VIEW.members
    )
    view = a_view(members=(*VIEW.members, *events), generations={"main": a_generation(), "events": a_generation()})

    assert view.lacks == ()


@settings(deadline=None)  # a busy machine is no bug
@given(st.sets(st.integers(0, 2)), st.sets(st.integers(0, 2)))
def test_a_cluster_is_ready_exactly_if_no_member_is_ill_and_no_disk_unformed(ill: set[int], unformed: set[int]) -> None:
    members = tuple(replace(each, healthy=number not in ill) for number, each in enumerate(VIEW.members))
    disks = tuple(
        replace(each, mark="forming" if number in unformed else "formed") for number, each in enumerate(VIEW.disks)
    )

    assert a_view(members=members, disks=disks).ready == (not ill and not unformed)


def test_a_wait_lasts_from_when_the_agent_began_it_until_now() -> None:
    told = a_note("vol-aaaa is being formatted", about="main/a", lasted=7)
    view = a_view(agents=(an_agent(0, age=3.0, waits=(told,)),))

    (wait,) = view.waits
    assert (wait.host, wait.note.text, wait.seconds) == ("master-0", "vol-aaaa is being formatted", 10.0)


def test_a_wait_that_has_just_begun_has_lasted_as_long_as_the_report_is_old() -> None:
    view = a_view(agents=(an_agent(0, age=0.5, waits=(a_note("quorum"),)),))

    assert [wait.seconds for wait in view.waits] == [0.5]


def test_a_host_that_is_gone_or_declared_dead_says_nothing_any_more() -> None:
    note = a_note("refused")
    agents = tuple(an_agent(number, person=(note,), waits=(note,), bugs=(note,)) for number in range(3))
    hosts = (a_host(0, alive=False), a_host(1, dead=True), a_host(2))
    view = a_view(hosts=hosts, agents=agents)

    assert [each.host for each in view.person] == ["master-2"]
    assert [each.host for each in view.waits] == ["master-2"]
    assert [each.host for each in view.bugs] == ["master-2"]


def test_things_are_found_by_their_names() -> None:
    view = a_view()

    assert view.host("master-1") == a_host(1)
    assert view.disk("vol-cccc") == a_disk("c")
    assert view.member("main/b") == a_member("b")
    assert (view.host(None), view.disk("vol-x"), view.member("main/x")) == (None, None, None)
    assert view.listed("main") == listed()
    assert view.listed("events") == ()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"report": {}}', '{"at": "x", "round": 1}', "null"])
def test_a_status_file_that_is_half_written_or_not_ours_is_left_out(state: Path, text: str) -> None:
    paths = write_state(state, a_view())
    (paths.host("master-0") / "run/protokube/status.json").write_text(text)

    assert sources.agent_view(paths, "master-0") is None
    other = sources.agent_view(paths, "master-1")
    assert other is not None
    assert undated(other) == undated(an_agent(1))


def test_an_agent_that_could_not_list_the_volumes_says_no_phase() -> None:
    told = status_file(an_agent(0)) | {"volumes": None}

    assert sources.read_agent("master-0", told).phases == {}


def test_connections_that_stand_to_peer_ports_are_read_from_a_hosts_own_network(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    rows = ["0B004D0A:9C40 0C004D0A:094C 01", "0B004D0A:9C41 0D004D0A:094C 06", "0B004D0A:9C42 0D004D0A:0FA1 01"]
    table.write_text("  sl  local_address rem_address st\n" + "".join(f"   0: {each} 00000000\n" for each in rows))

    assert sources.connected(table, [2380]) == ("10.77.0.12",)
    assert sources.connected(table, [2380, 4001]) == ("10.77.0.12", "10.77.0.13")
    assert sources.connected(tmp_path / "gone", [2380]) == ()


# Members and where they live.


def test_the_members_are_those_the_masters_were_told_reached_through_the_ports_of_this_machine(state: Path) -> None:
    wanted = from_config(completed(cloud="local", masters=3))
    told = wanted.etcd[0].members[0]
    port = wanted.etcd[0].pod.client_port
    found = expect(wanted, [a_disk("a")], wanted.cluster, {(told.dns_name, port): 40001})

    first = found[0]
    assert (first.member, first.name, first.dns_name) == ("main/a", told.name, told.dns_name)
    assert (first.url, first.volume, first.host) == ("https://127.0.0.1:40001", "vol-aaaa", "master-0")
    assert [(each.url, each.volume, each.host) for each in found[1:]] == [("", None, None)] * (len(found) - 1)


def test_what_the_masters_are_told_is_read_from_whichever_host_has_it(state: Path) -> None:
    wanted = from_config(completed(cloud="local", masters=3))
    paths = write_state(state, a_view())
    for host, text in (("master-0", "{half"), ("master-1", json.dumps({"master": to_tree(wanted)}))):
        file = paths.host(host) / "etc/protokube/agent.json"
        file.parent.mkdir(parents=True)
        file.write_text(text)

    assert sources.master_config(paths, ["master-0", "master-1", "master-2"]) == wanted
    assert sources.master_config(paths, ["master-0"]) is None


def test_before_the_masters_are_told_anything_the_tags_of_volumes_name_the_members() -> None:
    found = expect(None, [a_disk("b"), a_disk("a", member="events/a")], "dev.local", {})

    assert [(each.name, each.dns_name) for each in found] == [
        ("etcd-b", "etcd-b.internal.dev.local"),
        ("etcd-events-a", "etcd-events-a.internal.dev.local"),
    ]


def test_of_two_volumes_for_one_member_the_one_that_somebody_holds_is_its_home() -> None:
    free, held = a_disk("a", id="vol-1", attached_to=None), a_disk("a", id="vol-2", attached_to="master-1")

    (member,) = expect(None, [free, held], "dev.local", {})
    assert (member.volume, member.host) == ("vol-2", "master-1")


def test_disks_come_in_the_order_of_their_members_main_first() -> None:
    rows = [
        {"id": name, "etcd_cluster": key, "member": short, "size": 1, "attached_to": None, "mark": "", "epoch": 0,
         "last_holder": ""}
        for name, key, short in [("v3", "events", "a"), ("v2", "main", "b"), ("v1", "main", "a")]
    ]  # fmt: skip

    assert [each.id for each in disk_views(rows, [])] == ["v1", "v2", "v3"]
    assert {each.phase for each in disk_views(rows, [])} == {"free"}


def test_a_phase_is_believed_only_from_the_holder_and_only_about_what_it_holds() -> None:
    agents = [an_agent(0, phases={"vol-aaaa": "taken"}), an_agent(1, phases={"vol-aaaa": "serving"})]
    row = {"id": "vol-aaaa", "etcd_cluster": "main", "member": "a", "size": 1, "attached_to": "master-0", "mark": "",
           "epoch": 0, "last_holder": ""}  # fmt: skip

    assert disk_views([row], agents)[0].phase == ""
    assert disk_views([row | {"attached_to": "master-1"}], agents)[0].phase == "serving"


def member(**changes: Any) -> MemberView:
    told = MemberView(member="main/a", name="etcd-a", dns_name="etcd-a.internal.dev", volume="vol-1", host="master-0")
    return replace(told, **changes)


def test_a_view_is_a_value() -> None:
    assert a_view() == a_view()
    assert isinstance(a_view(), ClusterView)
