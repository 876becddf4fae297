"""The steps of `up` that need no cloud: each may be repeated, and what is there is never made anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.config import completed
from builders.secrets import given_away, secrets_of
from protokube.config.dnscontroller import KEY_SECRET
from protokube.launch import prepare
from protokube.launch.derive import from_config
from protokube.launch.machine import MasterConfig, from_tree
from protokube.local import bringup
from protokube.local.base import client_files
from protokube.local.base.paths import Paths
from protokube.local.cloud.template import Template
from protokube.local.node.kubehost import Nodes, Runtime, with_nodes
from protokube.pki.authority import load_authority
from protokube.pki.keystore import Keystore
from protokube.store import Store, layout
from protokube.store.memory import MemoryStore

PATHS = Paths.at(Path("/state/laptop"))


@pytest.fixture
def store() -> Store:
    return MemoryStore("memory://bringup")


@pytest.fixture
def wanted() -> MasterConfig:
    return from_config(completed(cloud="local", masters=3))


def test_authorities_are_made_once_and_sign_the_users_own_certificate(
    store: Store, wanted: MasterConfig, tmp_path: Path
) -> None:
    paths = Paths.at(tmp_path / "laptop")
    paths.create()
    prepare.ensure_authorities(store, wanted)
    keystore = Keystore(store=store, layout=layout, cluster=wanted.cluster)
    before = load_authority(keystore, "etcd-client-ca").certificate

    prepare.ensure_authorities(store, wanted)
    bringup.write_client(store, paths, wanted)

    folder = client_files.folder(paths)
    assert load_authority(keystore, "etcd-client-ca").certificate == before
    assert (folder / "ca.crt").read_bytes() == before
    assert (folder / "client.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kubelet", [False, True])
def test_no_secret_of_the_store_is_in_anything_that_a_host_is_made_from(store: Store, kubelet: bool) -> None:
    config = completed(cloud="local", masters=3, encryptionConfig=True)
    wanted = from_config(config, nodes=kubelet)
    store.put(layout.secret(wanted.cluster, "encryption"), b"kind: EncryptionConfiguration\n  secret: MDEyMzQ1Njc4OQ==")
    store.put(layout.secret(wanted.cluster, "kubelet"), b"abcdef.0123456789abcdef")
    prepare.ensure_authorities(store, wanted)
    key = prepare.tsig_key(store, wanted.cluster)

    template = bringup.template(bringup.launch_data(wanted, config.cluster["dnsZone"]), [Path("/opt/etcd/bin")], PATHS)
    if kubelet:
        runtime = Runtime(folders=(), plugins=Path("/cache/cni"), shown=(Path("/cache/images"),), images={})
        nodes = Nodes(runtime=runtime, sandbox_image="pause:3")
        wanted = with_nodes(wanted, config)
        template = bringup.template(
            bringup.launch_data(wanted, config.cluster["dnsZone"]), [Path("/opt/etcd/bin")], PATHS
        )
        template = nodes.template(template, wanted, PATHS)
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
    made = Template.read(bringup.template(bringup.launch_data(wanted, "laptop"), [Path("/opt/etcd/bin")], PATHS))

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
