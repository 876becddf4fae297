"""One look at a local cluster: what is ready, what is lacking, and what can be seen while parts are absent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders.config import completed
from builders.view import (
    ShortFolder,
    a_disk,
    a_view,
    an_agent,
    status_file,
    write_state,
)
from protokube.launch.derive import from_config
from protokube.launch.machine import to_tree
from protokube.local.view import sources
from protokube.local.view.look import disk_views, expect
from protokube.view.values import AgentView


@pytest.fixture
def state() -> Iterator[Path]:
    with ShortFolder() as folder:
        yield folder


def undated(agent: AgentView) -> AgentView:
    """Without its age, which a busy machine makes greater."""
    return replace(agent, age=0.0)


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
