"""`protokube agent` before its first round: what it is told, and what is wrong with that."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.config import completed
from protokube.cli import wiring
from protokube.cli.agent import retry_until_answered
from protokube.errors import InvalidRequest, TryLater
from protokube.host.clock import SystemClock
from protokube.launch.boot import LaunchDocument, read_launch_document
from protokube.launch.derive import from_config
from protokube.launch.machine import MasterConfig
from protokube.providers import catalog
from protokube.store.memory import MemoryStore

STORE = MemoryStore("memory://agent")


def a_document() -> LaunchDocument:
    wanted = from_config(completed(cloud="local", masters=1))
    return LaunchDocument(master=wanted, store="file:///s", infrastructure={"kind": "local"}, units="local")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("{}", "lacks master, store, infrastructure, units"),
        ("null", "holds no JSON object"),
        ('"text"', "holds no JSON object"),
    ],
)
def test_a_file_that_is_not_launch_data_is_refused_with_everything_that_is_wrong(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "agent.json"
    file.write_text(text)

    with pytest.raises(InvalidRequest, match=said):
        read_launch_document(file)


def test_launch_data_are_read_back(tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    launch = replace(a_document(), publish_every=2.5, dns={"kind": "rfc2136"}, pki="/keys")
    file.write_text(json.dumps(launch.to_tree()))

    assert read_launch_document(file) == launch


def test_launch_data_of_before_the_document_had_a_version_are_read() -> None:
    tree = a_document().to_tree()
    for name in ("version", "dns", "pki"):
        del tree[name]

    assert LaunchDocument.from_tree(tree) == LaunchDocument.from_tree(tree | {"dns": None}) == a_document()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"publishEvry": 3}, "agent.json: publishEvry: no such field"),
        ({"publishEvery": "soon"}, "agent.json: publishEvery: not seconds"),
        ({"publishEvery": 0}, "agent.json: publishEvery: not such a time"),
        ({"publishEvery": float("nan")}, "agent.json: publishEvery: not such a time"),
        ({"store": 3}, "agent.json: store: not a URL"),
        ({"units": None}, "agent.json: units: not a name"),
        ({"infrastructure": "local"}, "agent.json: infrastructure: not an object"),
        ({"version": True}, "agent.json: version: not a number"),
        ({"version": 2, "unknown": 1}, "agent.json was made by a newer version of protokube"),
        ({"master": {}}, "this is not the configuration of a master"),
    ],
)
def test_what_is_wrong_in_launch_data_is_named_with_its_path(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        LaunchDocument.from_tree(a_document().to_tree() | changed)


def test_vendors_that_there_are_not_are_named() -> None:
    with pytest.raises(InvalidRequest, match="no infrastructure 'azure'"):
        catalog.infrastructure({"kind": "azure"})
    with pytest.raises(InvalidRequest, match="no provider of names 'etcd'"):
        catalog.names({"kind": "etcd"}, Path("/"), STORE, "dev")
    with pytest.raises(InvalidRequest, match="no service manager 'upstart'"):
        wiring.units("upstart")


def test_names_in_a_zone_and_in_a_hosts_file_are_told_apart(tmp_path: Path) -> None:
    told = {"kind": "rfc2136", "server": "127.0.0.1", "zone": "dev", "key": {"fromSecret": "dns-update-key"}}
    in_zone = catalog.names(told, tmp_path, STORE, "dev")
    in_file = catalog.names({"kind": "hosts", "zone": "dev"}, tmp_path, STORE, "dev")

    assert (in_zone.zone, in_file.zone) == (True, False)
    assert in_zone.provider is not None
    assert in_file.provider is not None
    assert in_zone.provider.zone == in_file.provider.zone == "dev"
    assert catalog.names(None, tmp_path, STORE, "dev") == catalog.Names(provider=None, zone=True)


def test_an_agent_asks_who_it_is_until_it_is_told() -> None:
    asked = []

    def ask() -> str:
        asked.append(1)
        if len(asked) < 3:
            raise TryLater("not yet")
        return "host-1"

    assert retry_until_answered(ask) == "host-1"


@pytest.mark.parametrize("value", ["often", None, True, 0, 0.5, -1, float("nan"), 301, 10**9, []])
def test_an_interval_of_publishing_that_is_none_is_bad_input(value: object) -> None:
    with pytest.raises(InvalidRequest, match="publishEvery: not"):
        LaunchDocument.from_tree({**a_document().to_tree(), "publishEvery": value})


def test_certificates_of_members_are_renewed_one_member_after_the_other(tmp_path: Path) -> None:
    from builders.config import completed
    from protokube.launch.derive import from_config

    wanted: MasterConfig = from_config(completed(cloud="local", masters=3))
    keys = wiring.machine_keys(MemoryStore("memory://keys"), wanted, tmp_path, SystemClock())

    places = [keys.place_of(f"etcd-{short}-peer") for short in "abc"]

    assert [(place.index, place.count) for place in places] == [(0, 3), (1, 3), (2, 3)]
    assert keys.place_of("protokube-etcd-client").count == 1
