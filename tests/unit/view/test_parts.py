"""Volumes with the phases that their holders report, and members with the volumes they live on."""

from __future__ import annotations

from builders.config import completed
from builders.view import a_disk, an_agent, status_file
from protokube.launch.derive import from_config
from protokube.providers.volumes import AttachmentState
from protokube.view.parts import SETTLED, disk_views, expect
from protokube.view.reports import read_agent


def test_the_members_are_those_the_masters_were_told_reached_through_the_ports_of_this_machine() -> None:
    wanted = from_config(completed(cloud="local", masters=3))
    told = wanted.etcd[0].members[0]
    port = wanted.etcd[0].pod.client_port
    found = expect(wanted, [a_disk("a")], wanted.cluster, {(told.dns_name, port): 40001})

    first = found[0]
    assert (first.member, first.name, first.dns_name) == ("main/a", told.name, told.dns_name)
    assert (first.url, first.volume, first.host) == ("https://127.0.0.1:40001", "vol-aaaa", "master-0")
    assert [(each.url, each.volume, each.host) for each in found[1:]] == [("", None, None)] * (len(found) - 1)


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


def test_a_volume_that_nobody_is_named_for_and_that_is_not_settled_is_not_shown_as_free() -> None:
    row = {"id": "vol-aaaa", "etcd_cluster": "main", "member": "a", "size": 1, "attached_to": None, "mark": "",
           "epoch": 0, "last_holder": ""}  # fmt: skip

    assert [(each.phase, each.state) for each in disk_views([row | {"state": "detaching"}], [])] == [
        ("taken", "detaching")
    ]
    assert [(each.phase, each.state) for each in disk_views([row | {"state": "settled"}], [])] == [("free", "")]
    held = row | {"attached_to": "master-0", "state": AttachmentState.BUSY}
    (shown,) = disk_views([held], [an_agent(0, phases={"vol-aaaa": "serving"})])
    assert (shown.phase, shown.state) == ("serving", "busy")


def test_the_settled_state_of_a_view_is_that_of_providers() -> None:
    assert SETTLED == AttachmentState.SETTLED


def test_an_agent_that_could_not_list_the_volumes_says_no_phase() -> None:
    told = status_file(an_agent(0)) | {"volumes": None}

    assert read_agent("master-0", told).phases == {}
