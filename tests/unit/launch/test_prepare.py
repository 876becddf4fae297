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
from protokube.providers.volumes import Volume
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
