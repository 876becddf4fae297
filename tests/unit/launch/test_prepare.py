"""What must exist before a machine boots: each step may be repeated, and what is there is never made anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.config import completed
from protokube.errors import Refused
from protokube.launch import prepare
from protokube.launch.derive import from_config
from protokube.launch.machine import MasterConfig
from protokube.members.generation import decode, encode
from protokube.pki.authority import load_authority
from protokube.pki.keystore import Keystore
from protokube.providers.clients.memory import MemoryCloud
from protokube.providers.groups.memory import MemoryGroups
from protokube.providers.volumes import Volume
from protokube.providers.volumes.memory import MemoryVolumePool
from protokube.store import Store, layout
from protokube.store.memory import MemoryStore


@pytest.fixture
def store() -> Store:
    return MemoryStore("memory://prepare")


@pytest.fixture
def wanted() -> MasterConfig:
    return from_config(completed(cloud="local", masters=3))


def volumes(wanted: MasterConfig, start: int = 1) -> list[Volume]:
    members = wanted.etcd[0].members
    return [
        Volume(
            id=f"vol-{start + number}", zone="local", etcd_cluster="main", member=member.short,
            members=tuple(each.short for each in members), size=member.size, made_empty=True,
        )
        for number, member in enumerate(members)
    ]  # fmt: skip


def test_the_generation_record_names_the_disks_and_is_open(store: Store, wanted: MasterConfig) -> None:
    made = prepare.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted))

    assert made.open
    assert made.founders == {"a": "vol-1", "b": "vol-2", "c": "vol-3"}
    assert made.token.startswith(wanted.etcd[0].token)
    assert not prepare.is_closed(store, wanted)


def test_a_second_up_keeps_the_generation(store: Store, wanted: MasterConfig) -> None:
    first = prepare.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted))

    assert prepare.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted)) == first


def test_a_record_of_other_disks_is_refused_while_creation_is_open(store: Store, wanted: MasterConfig) -> None:
    prepare.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted))

    with pytest.raises(Refused, match="names other volumes"):
        prepare.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted, start=7))


def test_a_closed_record_stays_whatever_disks_there_are_now(store: Store, wanted: MasterConfig) -> None:
    made = prepare.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted))
    path = layout.etcd_generation(wanted.cluster, "main")
    store.put(path, encode(replace(made, open=False, replacements={"c": "vol-9"})))

    kept = prepare.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted, start=7))

    assert not kept.open
    assert prepare.is_closed(store, wanted)


def test_an_unreadable_record_is_never_made_anew(store: Store, wanted: MasterConfig) -> None:
    path = layout.etcd_generation(wanted.cluster, "main")
    store.put(path, b"half a rec")

    with pytest.raises(Refused, match="cannot be read"):
        prepare.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted))
    assert store.read(path).data == b"half a rec"
    assert decode(store.read(path).data) is None
    assert not prepare.is_closed(store, wanted)


def test_a_missing_record_is_not_a_closed_one(store: Store, wanted: MasterConfig) -> None:
    assert not prepare.is_closed(store, wanted)


def test_the_key_for_names_is_made_once(store: Store) -> None:
    assert prepare.tsig_key(store, "dev") == prepare.tsig_key(store, "dev")
    assert prepare.tsig_key(store, "dev").secret != prepare.tsig_key(store, "other").secret


def test_the_key_of_service_accounts_is_made_once_beside_every_authority(store: Store, wanted: MasterConfig) -> None:
    prepare.ensure_authorities(store, wanted)
    keystore = Keystore(store=store, layout=layout, cluster=wanted.cluster)
    names = ("kubernetes-ca", "front-proxy-ca", "etcd-peer-ca", "etcd-client-ca", "service-account")
    before = {name: load_authority(keystore, name) for name in names}
    assert len({each.key for each in before.values()}) == len(names)

    prepare.ensure_authorities(store, wanted)

    assert {name: load_authority(keystore, name) for name in names} == before


def test_each_member_gets_one_founder_that_its_generation_record_names(store: Store, wanted: MasterConfig) -> None:
    pool = MemoryVolumePool(MemoryCloud())

    founders = prepare.create_founders(pool, wanted, "local")
    records = [prepare.record_generation(store, wanted.cluster, etcd, founders) for etcd in wanted.etcd]
    again = prepare.create_founders(pool, wanted, "local")

    sizes = {(etcd.key, member.short): member.size for etcd in wanted.etcd for member in etcd.members}
    assert {(each.etcd_cluster, each.member): each.size for each in founders} == sizes
    assert {volume for record in records for volume in record.founders.values()} == {each.id for each in founders}
    assert list(again) == list(founders)
    assert [prepare.record_generation(store, wanted.cluster, etcd, again) for etcd in wanted.etcd] == records


def test_each_master_is_a_group_of_one_and_a_second_up_changes_none(wanted: MasterConfig) -> None:
    cloud = MemoryCloud()
    groups = MemoryGroups(cloud)
    prepare.ensure_groups(groups, wanted, {})
    before = cloud.machines()

    prepare.ensure_groups(groups, wanted, {})

    assert [(group.name, group.size) for group in groups.list_groups()] == [
        ("master-a", 1),
        ("master-b", 1),
        ("master-c", 1),
    ]
    assert cloud.machines() == before
    assert sorted(machine.group for machine in before) == ["master-a", "master-b", "master-c"]
