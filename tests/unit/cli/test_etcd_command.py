"""`protokube etcd`: the members as etcd lists them, and what is said of a volume that is to be adopted."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from builders.original import lay_out, manifest_of_the_original
from builders.view import CLUSTER, a_host, a_view, but, listed
from protokube.cli.etcd import find_volume, mounted_at
from protokube.cli.render.members import found_tree, members_tree, render_found, render_members
from protokube.errors import InvalidRequest, TryLater
from protokube.local.adopting import read_layout
from protokube.members.adopt import Adopt, Adopted, Layout
from protokube.members.generation import Generation
from protokube.members.identity import Identity, Unreadable
from protokube.members.start_values import Listed, Refuse

VIEW = a_view()
URL = f"https://etcd-a.internal.{CLUSTER}"


def test_members_are_listed_as_etcd_has_them_with_where_each_lives() -> None:
    first = members_tree(VIEW)["main"][0]

    assert first == {
        "id": "a0", "name": "etcd-a", "peerURLs": [f"{URL}:2380"], "clientURLs": [f"{URL}:4001"], "learner": False,
        "started": True, "healthy": True, "alarms": [], "leader": True, "revision": 10, "host": "master-0",
        "volume": "vol-aaaa",
    }  # fmt: skip


def test_the_list_as_a_table() -> None:
    lines = render_members(VIEW)

    assert lines[0] == "main:"
    assert lines[1].split("  ")[0] == "ID"
    assert lines[2].split() == [
        "a0", "etcd-a", "healthy", "leader", "10", "master-0", "vol-aaaa", f"{URL}:2380", f"{URL}:4001",
    ]  # fmt: skip
    assert [line.split()[3] for line in lines[2:]] == ["leader", "voter", "voter"]


def test_a_learner_that_was_added_and_has_not_started_is_found_by_its_peer_url() -> None:
    new = Listed(id=0xEE, name="", peer_urls=(f"{URL}:2380",), client_urls=(), learner=True)
    members = tuple(replace(each, listed=(*listed(("b", "c")), new)) for each in VIEW.members)
    view = a_view(members=but(members, 0, healthy=False, revision=0))
    entry = members_tree(view)["main"][-1]

    assert (entry["id"], entry["started"], entry["host"], entry["volume"]) == ("ee", False, "master-0", "vol-aaaa")
    assert render_members(view)[-1].split()[:4] == ["ee", "-", "unstarted", "learner"]


def test_a_member_that_is_none_of_ours_is_shown_as_it_is() -> None:
    stranger = Listed(id=0xEE, name="who", peer_urls=("https://who:1",), client_urls=("https://who:2",))
    view = a_view(members=tuple(replace(each, listed=(*listed(), stranger)) for each in VIEW.members))
    entry = members_tree(view)["main"][-1]

    assert (entry["name"], entry["host"], entry["healthy"]) == ("who", None, False)


def test_without_a_quorum_that_is_what_is_said() -> None:
    view = a_view(members=tuple(replace(each, healthy=False) for each in VIEW.members))

    assert render_members(view) == ["main: no member answers behind a quorum"]
    assert members_tree(view) == {"main": []}


def test_two_etcd_clusters_have_a_table_each() -> None:
    events = tuple(replace(each, member=each.member.replace("main", "events"), healthy=False) for each in VIEW.members)
    lines = render_members(a_view(members=(*VIEW.members, *events)))

    assert lines[-2:] == ["", "events: no member answers behind a quorum"]


# What was found on a volume.


IDENTITY = Identity(
    cluster=CLUSTER, etcd_cluster="main", member="a", volume="vol-aaaa", generation="g1", epoch=0, holder="adopted"
)
RECORD = Generation(id="g1", etcd_cluster="main", token="t", founders={}, replacements={}, open=False)
LAYOUT = Layout(
    identity=None, logs={"data": 2}, manifests={"etcd.manifest": manifest_of_the_original()}, database_size=20480
)


def test_what_was_found_is_shown_before_anything_is_written() -> None:
    lines = render_found("vol-aaaa", "main", LAYOUT, Adopt(identity=IDENTITY, generation=RECORD, warnings=("careful",)))

    assert lines == [
        "on vol-aaaa:",
        "  data      var/etcd/data, 2 write-ahead logs",
        "  database  20 KiB",
        "  manifest  etcd-a, token etcd-cluster-token-etcd",
        "  peer      etcd-a=https://etcd-a.internal.dev.local:2380",
        "  peer      etcd-b=https://etcd-b.internal.dev.local:2380",
        "  peer      etcd-c=https://etcd-c.internal.dev.local:2380",
        "warning: careful",
        f"it can become main/a of {CLUSTER}",
    ]


def test_why_it_cannot_be_adopted_and_that_it_is_already_are_said() -> None:
    empty = Layout(identity=None, logs={}, manifests={})

    assert render_found("vol-aaaa", "main", empty, Refuse("no data", "check its tags")) == [
        "on vol-aaaa:",
        "  data      var/etcd/data, 0 write-ahead logs",
        "  database  none",
        "  manifest  none that can be read",
        "it cannot be adopted: no data",
        "  hint: check its tags",
    ]
    assert render_found("vol-aaaa", "main", LAYOUT, Adopted(IDENTITY))[-1] == (
        "it is adopted already: epoch 0, generation g1"
    )


def test_what_was_found_as_data() -> None:
    adopt = Adopt(identity=IDENTITY, generation=RECORD)

    assert found_tree("v", LAYOUT, adopt, [])["adopted"] is False
    assert found_tree("v", LAYOUT, adopt, ["wrote it"])["adopted"] is True
    assert found_tree("v", LAYOUT, Adopted(IDENTITY), [])["adopted"] is True
    refused = found_tree("v", LAYOUT, Refuse("no", "hint"), [])
    assert (refused["adopted"], refused["refused"], refused["hint"]) == (False, "no", "hint")
    assert (refused["logs"], refused["manifests"], refused["databaseSize"]) == ({"data": 2}, ["etcd.manifest"], 20480)


def test_a_folder_laid_out_by_the_original_is_read(tmp_path: Path) -> None:
    lay_out(tmp_path, key="events", name="etcd-events-a")
    found = read_layout(tmp_path)

    assert (found.identity, found.logs, list(found.manifests)) == (None, {"data-events": 1}, ["etcd-events.manifest"])


def test_an_empty_folder_has_nothing(tmp_path: Path) -> None:
    assert read_layout(tmp_path) == Layout(identity=None, logs={}, manifests={})


def test_an_identity_that_is_a_folder_or_half_a_file_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "protokube.json").write_text('{"cluster": ')
    assert isinstance(read_layout(tmp_path).identity, Unreadable)
    (tmp_path / "protokube.json").unlink()
    (tmp_path / "protokube.json").mkdir()
    assert isinstance(read_layout(tmp_path).identity, Unreadable)


def test_a_manifest_that_is_a_link_or_huge_is_not_read(tmp_path: Path) -> None:
    lay_out(tmp_path, manifest=False)
    (tmp_path / "secret").write_text("spec: {}")
    (tmp_path / "k8s.io/manifests/etcd.manifest").symlink_to(tmp_path / "secret")
    (tmp_path / "k8s.io/manifests/huge.manifest").write_bytes(b"x" * (1024 * 1024 + 1))

    assert read_layout(tmp_path).manifests == {"etcd.manifest": "", "huge.manifest": ""}


# Which volume, and where it is.


def test_a_volume_is_adopted_where_its_holder_has_it_mounted() -> None:
    disk, member = find_volume(VIEW, "vol-aaaa")

    assert member.name == "etcd-a"
    with pytest.raises(TryLater, match="no host has vol-aaaa mounted"):
        mounted_at(a_view(hosts=(a_host(0, pid=None),)), disk)
    with pytest.raises(TryLater, match="vol-aaaa is not mounted on master-0 yet"):
        mounted_at(a_view(hosts=(a_host(0, pid=os.getpid()),)), disk)


def test_a_volume_that_there_is_not_is_said_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidRequest) as caught:
        find_volume(VIEW, "vol-aaab")

    assert caught.value.hint == "did you mean `vol-aaaa`?"
