"""etcd clusters: which there are, their members, ports, versions and disks."""

from __future__ import annotations

import pytest

from builders.config import ZONES, a_group, a_spec, completed, origin
from protokube.config.complete import complete
from protokube.config.etcd import short_names


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (["master-us-east-1a", "master-us-east-1b", "master-us-east-1c"], ["a", "b", "c"]),
        (["control-plane-us-east-1a", "control-plane-us-east-1b"], ["a", "b"]),
        (["master-us-west-2a-1", "master-us-west-2b-1", "master-us-west-2a-2"], ["a-1", "b-1", "a-2"]),
        (["master-rack-1", "master-rack-2", "master-rack-3"], ["1", "2", "3"]),
        (["master-us-east-1a"], ["us-east-1a"]),
        (["only"], ["only"]),
        ([], []),
        (["x", "y"], ["x", "y"]),
    ],
)
def test_members_are_named_by_what_tells_their_groups_apart(groups: list[str], names: list[str]) -> None:
    assert list(short_names(groups).values()) == names


@pytest.mark.parametrize(
    "groups",
    [
        ["master-a", "master-ab", "master-abc"],  # what is alike is the whole of one name
        ["master-a", "control-plane-a"],  # nothing is left to tell them apart
        ["east-1", "east--1"],  # the rest would be the same once its dash is gone
    ],
)
def test_names_that_cannot_be_shortened_stay_whole_and_none_is_empty(groups: list[str]) -> None:
    found = short_names(groups)

    assert list(found) == groups
    assert all(found.values())
    bare = [name.removeprefix("master-").removeprefix("control-plane-") for name in groups]
    assert list(found.values()) == bare


def test_a_cloud_has_main_and_events_and_one_machine_has_only_main() -> None:
    assert list(completed().cluster["etcdClusters"]) == ["main", "events"]
    assert list(completed(cloud="local").cluster["etcdClusters"]) == ["main"]


def test_each_group_of_masters_has_one_member_of_each_cluster_in_its_zone() -> None:
    for etcd in completed().cluster["etcdClusters"].values():
        assert {name: (each["instanceGroup"], each["zone"]) for name, each in etcd["members"].items()} == {
            "a": ("master-us-east-1a", "us-east-1a"),
            "b": ("master-us-east-1b", "us-east-1b"),
            "c": ("master-us-east-1c", "us-east-1c"),
        }


def test_a_member_with_the_short_name_of_a_group_belongs_to_it() -> None:
    fields = [{"name": name, "volumeSize": 5} for name in "abc"]
    members = completed(etcdClusters=[{"name": "main", "members": fields}]).cluster["etcdClusters"]["main"]["members"]

    assert members["b"]["instanceGroup"] == "master-us-east-1b"
    assert members["b"]["volumeSize"] == 5


def test_ports_are_those_of_the_original_and_the_next_ones() -> None:
    fields = [{"name": name} for name in ("main", "events", "cilium")]
    found = completed(etcdClusters=fields).cluster["etcdClusters"]

    assert {key: (each["clientPort"], each["peerPort"], each["metricsPort"]) for key, each in found.items()} == {
        "main": (4001, 2380, 2390),
        "events": (4002, 2381, 2391),
        "cilium": (4003, 2382, 2392),
    }


@pytest.mark.parametrize("names", [["cilium", "main"], ["main", "cilium"], ["cilium", "other", "events", "main"]])
def test_ports_do_not_clash_whatever_order_the_clusters_are_written_in(names: list[str]) -> None:
    found = completed(etcdClusters=[{"name": name} for name in names]).cluster["etcdClusters"]

    assert found["main"]["clientPort"] == 4001
    assert found["cilium"]["clientPort"] == 4003
    assert len({each["peerPort"] for each in found.values()}) == len(names)


def test_tokens_and_directories_keep_clusters_apart() -> None:
    found = completed(etcdClusters=[{"name": "main"}, {"name": "events"}, {"name": "cilium"}]).cluster["etcdClusters"]

    assert [each["token"] for each in found.values()] == [
        "etcd-cluster-token-etcd-dev.example.com",
        "etcd-cluster-token-etcd-events-dev.example.com",
        "etcd-cluster-token-etcd-cilium-dev.example.com",
    ]
    assert [each["dataDir"] for each in found.values()] == [
        "/var/etcd/data",
        "/var/etcd/data-events",
        "/var/etcd/data-cilium",
    ]


@pytest.mark.parametrize(
    ("cloud", "kind", "size", "encrypted"),
    [("aws", "gp3", 20, True), ("gce", "pd-ssd", 20, True), ("local", None, 1, False), ("metal", None, 20, False)],
)
def test_disks_are_what_the_cloud_has(cloud: str, kind: str | None, size: int, encrypted: bool) -> None:
    members = completed(cloud=cloud).cluster["etcdClusters"]["main"]["members"]

    for member in members.values():
        assert member.get("volumeType") == kind
        assert (member["volumeSize"], member["encryptedVolume"]) == (size, encrypted)


@pytest.mark.parametrize("cloud", ["aws", "gce", "local", "metal"])
def test_etcd_stops_taking_writes_before_its_disk_is_full(cloud: str) -> None:
    for etcd in completed(cloud=cloud).cluster["etcdClusters"].values():
        assert all(etcd["quotaBackendBytes"] < each["volumeSize"] * 10**9 for each in etcd["members"].values())


def test_said_zeroes_of_a_cluster_stand() -> None:
    fields = {"name": "main", "quotaBackendBytes": 0, "replaceLostVolumes": False, "logLevel": ""}
    main = completed(etcdClusters=[fields]).cluster["etcdClusters"]["main"]

    assert (main["quotaBackendBytes"], main["replaceLostVolumes"], main["logLevel"]) == (0, False, "")


def test_backups_lie_beside_the_configuration() -> None:
    nowhere = completed().cluster["etcdClusters"]["events"]["backups"]
    stored = complete(a_spec(), store="s3://bucket/clusters/").cluster

    assert nowhere == {"backupStore": "backups/etcd/events", "interval": "15m", "retentionDays": 90}
    assert stored["configBase"] == "s3://bucket/clusters/dev.example.com"
    assert stored["etcdClusters"]["main"]["backups"]["backupStore"] == (
        "s3://bucket/clusters/dev.example.com/backups/etcd/main"
    )


def test_a_zone_of_a_member_follows_from_its_group_and_says_so() -> None:
    groups = [a_group(f"m{index}", "Master", zones=[zone]) for index, zone in enumerate(ZONES["aws"])]
    config = completed(*groups)

    path = "etcdClusters.main.members.1.zone"
    assert config.cluster["etcdClusters"]["main"]["members"]["1"]["zone"] == "us-east-1b"
    assert origin(config, path).of == ("instanceGroups.m1.zones",)


def test_old_revisions_may_be_deleted_where_kubernetes_is_the_user_and_nowhere_else_unless_said() -> None:
    found = completed(etcdClusters=[{"name": "main"}, {"name": "events"}, {"name": "cilium"}])
    may = {key: settings["maintenance"]["compact"] for key, settings in found.cluster["etcdClusters"].items()}

    assert may == {"main": True, "events": True, "cilium": False}
    assert origin(found, "etcdClusters.cilium.maintenance.compact").because == "not used by Kubernetes"
    fields = completed(etcdClusters=[{"name": "main", "maintenance": {"compact": False}}])
    assert fields.cluster["etcdClusters"]["main"]["maintenance"]["compact"] is False


def test_a_removed_member_rejoins_after_five_minutes_unless_the_spec_says_otherwise() -> None:
    settings = completed().cluster["etcdClusters"]["main"]["maintenance"]
    assert (settings["rejoinRemoved"], settings["rejoinRemovedAfter"]) == (True, "5m")
    chosen = {"rejoinRemoved": False, "rejoinRemovedAfter": "90s"}
    fields = completed(etcdClusters=[{"name": "main", "maintenance": chosen}])
    assert fields.cluster["etcdClusters"]["main"]["maintenance"].items() >= chosen.items()
