"""`protokube agent` before its first round: what it is told, and what is wrong with that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from protokube.cli import wiring
from protokube.cli.agent import publish_every, read_launch, retry_until_answered
from protokube.errors import InvalidRequest, TryLater
from protokube.host.clock import SystemClock
from protokube.launch.machine import MasterConfig
from protokube.providers import catalog
from protokube.store.memory import MemoryStore

STORE = MemoryStore("memory://agent")


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
        read_launch(file)


def test_launch_data_are_read_back(tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    launch = {"master": {}, "store": "file:///s", "infrastructure": {"kind": "local"}, "units": "local"}
    file.write_text(json.dumps(launch))

    assert read_launch(file) == launch


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


@pytest.mark.parametrize("value", ["often", None, True, 0, -1, float("nan"), 10**9, []])
def test_an_interval_of_publishing_that_is_none_is_bad_input(value: object) -> None:
    with pytest.raises(InvalidRequest, match="publishEvery is"):
        publish_every({"publishEvery": value})


def test_an_interval_of_publishing_is_a_minute_unless_it_is_given() -> None:
    assert (publish_every({}), publish_every({"publishEvery": 2})) == (60.0, 2.0)


def test_certificates_of_members_are_renewed_one_member_after_the_other(tmp_path: Path) -> None:
    from builders.config import completed
    from protokube.launch.derive import from_config

    wanted: MasterConfig = from_config(completed(cloud="local", masters=3))
    keys = wiring.machine_keys(MemoryStore("memory://keys"), wanted, tmp_path, SystemClock())

    places = [keys.place_of(f"etcd-{short}-peer") for short in "abc"]

    assert [(place.index, place.count) for place in places] == [(0, 3), (1, 3), (2, 3)]
    assert keys.place_of("protokube-etcd-client").count == 1
