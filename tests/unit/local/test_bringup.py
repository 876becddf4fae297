"""The steps of `up` that need no cloud: each may be repeated, and what is there is never made anew."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from builders.config import completed
from builders.secrets import given_away, secrets_of
from protokube.agent.launchdata import from_config
from protokube.agent.wanted import MasterConfig, from_tree
from protokube.config.dnscontroller import KEY_SECRET
from protokube.errors import Refused
from protokube.local import bringup
from protokube.local.base import client_files
from protokube.local.base.paths import Paths
from protokube.local.cloud.template import Template
from protokube.local.node.kubehost import Nodes, Runtime
from protokube.members.generation import decode, encode
from protokube.pki.authority import load_authority
from protokube.pki.keystore import Keystore
from protokube.providers.volumes import Volume
from protokube.store import Store, layout
from protokube.store.memory import MemoryStore


@pytest.fixture
def store() -> Store:
    return MemoryStore("memory://bringup")


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
    made = bringup.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted))

    assert made.open
    assert made.founders == {"a": "vol-1", "b": "vol-2", "c": "vol-3"}
    assert made.token.startswith(wanted.etcd[0].token)
    assert not bringup.is_closed(store, wanted)


def test_a_second_up_keeps_the_generation(store: Store, wanted: MasterConfig) -> None:
    first = bringup.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted))

    assert bringup.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted)) == first


def test_a_record_of_other_disks_is_refused_while_creation_is_open(store: Store, wanted: MasterConfig) -> None:
    bringup.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted))

    with pytest.raises(Refused, match="names other volumes"):
        bringup.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted, start=7))


def test_a_closed_record_stays_whatever_disks_there_are_now(store: Store, wanted: MasterConfig) -> None:
    made = bringup.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted))
    path = layout.etcd_generation(wanted.cluster, "main")
    store.put(path, encode(replace(made, open=False, replacements={"c": "vol-9"})))

    kept = bringup.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted, start=7))

    assert not kept.open
    assert bringup.is_closed(store, wanted)


def test_an_unreadable_record_is_never_made_anew(store: Store, wanted: MasterConfig) -> None:
    path = layout.etcd_generation(wanted.cluster, "main")
    store.put(path, b"half a rec")

    with pytest.raises(Refused, match="cannot be read"):
        bringup.record_generation(store, wanted.cluster, wanted.etcd[0], volumes(wanted))
    assert store.read(path).data == b"half a rec"
    assert decode(store.read(path).data) is None
    assert not bringup.is_closed(store, wanted)


def test_a_missing_record_is_not_a_closed_one(store: Store, wanted: MasterConfig) -> None:
    assert not bringup.is_closed(store, wanted)


def test_the_key_for_names_is_made_once(store: Store) -> None:
    assert bringup.tsig_key(store, "dev") == bringup.tsig_key(store, "dev")
    assert bringup.tsig_key(store, "dev").secret != bringup.tsig_key(store, "other").secret


def test_authorities_are_made_once_and_sign_the_users_own_certificate(
    store: Store, wanted: MasterConfig, tmp_path: Path
) -> None:
    paths = Paths.at(tmp_path / "laptop")
    paths.create()
    bringup.ensure_authorities(store, wanted)
    keystore = Keystore(store=store, layout=layout, cluster=wanted.cluster)
    before = load_authority(keystore, "etcd-client-ca").certificate

    bringup.ensure_authorities(store, wanted)
    bringup.write_client(store, paths, wanted)

    folder = client_files.folder(paths)
    assert load_authority(keystore, "etcd-client-ca").certificate == before
    assert (folder / "ca.crt").read_bytes() == before
    assert (folder / "client.key").stat().st_mode & 0o777 == 0o600


def test_the_key_of_service_accounts_is_made_once_beside_every_authority(store: Store, wanted: MasterConfig) -> None:
    bringup.ensure_authorities(store, wanted)
    keystore = Keystore(store=store, layout=layout, cluster=wanted.cluster)
    names = ("kubernetes-ca", "front-proxy-ca", "etcd-peer-ca", "etcd-client-ca", "service-account")
    before = {name: load_authority(keystore, name) for name in names}
    assert len({each.key for each in before.values()}) == len(names)

    bringup.ensure_authorities(store, wanted)

    assert {name: load_authority(keystore, name) for name in names} == before


@pytest.mark.parametrize("kubelet", [False, True])
def test_no_secret_of_the_store_is_in_anything_that_a_host_is_made_from(store: Store, kubelet: bool) -> None:
    config = completed(cloud="local", masters=3, encryptionConfig=True)
    wanted = from_config(config, nodes=kubelet)
    store.put(layout.secret(wanted.cluster, "encryption"), b"kind: EncryptionConfiguration\n  secret: MDEyMzQ1Njc4OQ==")
    store.put(layout.secret(wanted.cluster, "kubelet"), b"abcdef.0123456789abcdef")
    bringup.ensure_authorities(store, wanted)
    key = bringup.tsig_key(store, wanted.cluster)

    template = bringup.template(bringup.launch_data(wanted, config.cluster["dnsZone"]), [Path("/opt/etcd/bin")])
    if kubelet:
        runtime = Runtime(folders=(), plugins=Path("/cache/cni"), shown=(Path("/cache/images"),), images={})
        kubelets = {group: each["kubelet"] for group, each in config.rendered.items() if group}
        nodes = Nodes(runtime=runtime, kubelets=kubelets, plugin="kubenet", sandbox_image="pause:3")
        template = nodes.template(template, nodes.wanted(wanted), "master-a", Paths.at(Path("/state/laptop")))
    text = json.dumps(template)

    assert len(secrets_of(store, wanted.cluster)) == 5 + 3, "all there are: private keys, and secrets"
    assert given_away(store, wanted.cluster, text) == []
    assert given_away(store, wanted.cluster, text + key.secret) == [layout.secret(wanted.cluster, KEY_SECRET)]
    assert "PRIVATE" not in text


def test_a_host_is_told_all_that_its_agent_asks_for_and_where_its_key_lies(wanted: MasterConfig) -> None:
    launch = json.loads(bringup.launch_data(wanted, "laptop"))

    assert from_tree(launch["master"]) == wanted
    assert launch["infrastructure"]["kind"] == "local"
    assert launch["dns"]["key"] == {"fromSecret": KEY_SECRET}


def test_the_template_of_a_master_can_be_carried_out(wanted: MasterConfig) -> None:
    made = Template.read(bringup.template(bringup.launch_data(wanted, "laptop"), [Path("/opt/etcd/bin")]))

    assert made.path.startswith("/opt/etcd/bin:")
    assert made.units["protokube.service"][-1] == "agent"
    assert "kubelet.service" in made.startable
    assert list(made.files) == ["/etc/protokube/agent.json"]


def test_the_environment_of_etcdctl_lists_members_in_order(tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "laptop")
    paths.create()
    client_files.folder(paths).mkdir()
    environment = client_files.environment(paths, {"etcd-b": "https://127.0.0.1:2", "etcd-a": "https://127.0.0.1:1"})

    file = client_files.write_environment(paths, environment)

    assert environment["ETCDCTL_ENDPOINTS"] == "https://127.0.0.1:1,https://127.0.0.1:2"
    assert "export ETCDCTL_ENDPOINTS=https://127.0.0.1:1,https://127.0.0.1:2\n" in file.read_text()
    assert "ETCDCTL_API" not in environment, "3.4 and later do without, and 3.6 warns of it"
