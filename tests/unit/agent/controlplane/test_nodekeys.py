"""The kubelet's own certificates and kubeconfig, made on the machine whose name they bear."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from builders.agent import a_machine, a_round
from clusters.scenario.edges import MemoryKeys
from clusters.scenario.host import wanted_of
from protokube.agent.controlplane import nodekeys
from protokube.errors import TryLater
from protokube.launch.machine import MasterConfig

FILE = "/var/lib/kubelet/kubeconfig"


@pytest.fixture
def wanted() -> MasterConfig:
    return nodekeys.with_node(replace(wanted_of(), kubelet_kubeconfig=FILE), a_machine("i-1"))


def test_the_kubelet_is_a_node_to_the_api_server_and_a_server_under_its_own_names(wanted: MasterConfig) -> None:
    client, server = wanted.certificates["kubelet"], wanted.certificates["kubelet-server"]
    assert (client.common_name, client.organizations) == ("system:node:i-1", ("system:nodes",))
    assert (client.usages, client.names) == (("client auth",), ())
    assert (server.usages, server.names) == (("server auth",), ("i-1", "10.0.0.1"))
    assert {client.authority, server.authority} == {"kubernetes-ca"}


def test_its_kubeconfig_leads_to_this_machine_and_is_nobody_elses_to_read(tmp_path: Path, wanted: MasterConfig) -> None:
    keys = MemoryKeys()
    round_ = a_round(tmp_path, wanted=wanted, keys=keys)
    nodekeys.sync(round_)
    place = round_.edges.inside(FILE)
    kubeconfig = yaml.safe_load(place.read_text())
    assert kubeconfig["clusters"][0]["cluster"]["server"] == f"https://127.0.0.1:{wanted.api_port}"
    assert kubeconfig["users"][0]["user"]["client-certificate"] == "/srv/kubernetes/kubelet.crt"
    assert place.stat().st_mode & 0o777 == 0o600
    assert keys.issued == {"shared", "kubelet", "kubelet-server"}


def test_what_is_in_order_is_not_written_again(tmp_path: Path, wanted: MasterConfig) -> None:
    round_ = a_round(tmp_path, wanted=wanted)
    nodekeys.sync(round_)
    before = round_.edges.inside(FILE).stat()
    nodekeys.sync(round_)
    after = round_.edges.inside(FILE).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_without_keys_there_is_no_kubeconfig_yet(tmp_path: Path, wanted: MasterConfig) -> None:
    round_ = a_round(tmp_path, wanted=wanted, keys=MemoryKeys(failing="the store does not answer"))
    with pytest.raises(TryLater):
        nodekeys.sync(round_)
    assert not round_.edges.inside(FILE).exists()


def test_a_machine_without_a_kubelet_of_its_own_gets_nothing(tmp_path: Path) -> None:
    plain, keys = wanted_of(), MemoryKeys()
    assert nodekeys.with_node(plain, a_machine()) == plain
    nodekeys.sync(a_round(tmp_path, wanted=plain, keys=keys))
    assert keys.issued == set()
