"""Requests of the sockets are checked before anything is done."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from builders.volumes import a_volume
from protokube.errors import InvalidRequest
from protokube.local.cloud.calls import Call, answer, machine_document, read_volume, volume_document
from protokube.providers.clients.local import LocalClient
from protokube.providers.machines import Machine
from protokube.providers.machines.local import decode_machine
from protokube.providers.volumes import AttachmentState
from protokube.providers.volumes.local import LocalVolumes, decode_volume

A_VOLUME = {"zone": "local", "etcd_cluster": "main", "member": "a", "members": ["a", "b"], "size": 4096}


def calls() -> dict[str, Any]:
    return {"add": lambda left, right=1: left + right, "nothing": lambda: None}


def test_a_call_gets_its_arguments_by_name() -> None:
    assert answer(calls(), {"call": "add", "left": 1, "right": 2}) == 3
    assert answer(calls(), {"call": "add", "left": 1}) == 2
    assert answer(calls(), {"call": "nothing"}) is None


@pytest.mark.parametrize("name", ["subtract", None, 1, ["add"], {}, "__class__"])
def test_a_call_that_is_not_there_is_refused_with_those_that_are(name: object) -> None:
    with pytest.raises(InvalidRequest, match="there is no call") as caught:
        answer(calls(), {"call": name})

    assert caught.value.want == "add, nothing"


@pytest.mark.parametrize("arguments", [{}, {"left": 1, "other": 2}, {"right": 1}])
def test_wrong_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="add cannot be called like this"):
        answer(calls(), {"call": "add", **arguments})


def test_what_a_volume_should_be_like_is_read_without_its_past() -> None:
    read = read_volume({**A_VOLUME, "id": "vol-1", "mark": "formed", "attached_to": "x", "made_empty": False})

    assert (read.id, read.mark, read.attached_to, read.made_empty) == ("", "", None, True)
    assert read.members == ("a", "b")


@pytest.mark.parametrize("field", sorted(A_VOLUME))
@pytest.mark.parametrize("value", [None, 0, "", [], {}])
def test_what_is_missing_of_a_volume_is_named(field: str, value: object) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_volume({**A_VOLUME, field: value})

    assert caught.value.want == field


def test_an_agent_of_before_external_addresses_gets_no_field_that_it_does_not_know() -> None:
    plain = Machine(id="m-1", name="m-1", zone="local", address="10.77.0.11", group="masters")

    assert machine_document(plain).keys() == {"id", "name", "zone", "address", "group", "master"}
    for machine in (plain, replace(plain, external="203.0.113.1")):
        assert decode_machine(machine_document(machine)) == machine


def test_an_agent_of_before_states_of_an_attachment_gets_none_while_a_volume_is_being_detached() -> None:
    plain = a_volume("vol-1")

    for volume in (plain, *(replace(plain, attached_to="m-1", state=each) for each in AttachmentState)):
        assert "state" not in volume_document(volume)
        assert decode_volume(json.loads(json.dumps(volume_document(volume, states=True)))) == volume


class OlderDaemon(LocalClient):
    """Answers as a daemon of before states of an attachment."""

    def call(self, name: str, /, **arguments: Any) -> Any:
        found = volume_document(a_volume("vol-1"))
        calls: dict[str, Call] = {
            "list_volumes": lambda: [found],
            "look_up": lambda volume: found if volume == "vol-1" else None,
        }
        return answer(calls, {"call": name, **arguments})


def test_a_daemon_of_before_states_of_an_attachment_is_asked_without_them() -> None:
    volumes = LocalVolumes(OlderDaemon())

    assert volumes.list_volumes() == [a_volume("vol-1")]
    assert volumes.look_up("vol-1") == a_volume("vol-1")
    assert volumes.look_up("vol-2") is None


def test_fields_that_only_a_newer_daemon_knows_are_ignored() -> None:
    machine = Machine(id="m-1", name="m-1", zone="local", address="10.77.0.11", group="masters")

    assert decode_volume({**volume_document(a_volume("vol-1")), "shape": "round"}) == a_volume("vol-1")
    assert decode_machine({**machine_document(machine), "shape": "round"}) == machine


def test_a_volume_in_a_state_that_only_a_newer_daemon_knows_is_not_free() -> None:
    assert not decode_volume({**volume_document(a_volume("vol-1")), "state": "being moved"}).is_free


def test_something_that_is_no_volume_at_all_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="JSON object"):
        read_volume("vol-1")
