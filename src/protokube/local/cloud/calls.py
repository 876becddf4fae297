"""The calls of the sockets of the local cloud, by name. Plain functions; they run in worker threads.

A host's socket acts for that host alone; the admin socket may act on every host.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from protokube.errors import InvalidRequest
from protokube.local.base.db import KeptRecords
from protokube.local.cloud.cloud import Cloud
from protokube.local.disk import disks
from protokube.local.host import network
from protokube.providers.machines import Machine
from protokube.providers.volumes import Volume

Call = Callable[..., Any]


def host_calls(cloud: Cloud, host: str) -> Mapping[str, Call]:
    """The calls that one host may make."""

    def device(volume: str) -> dict[str, str | None]:
        found = cloud.device(host, volume)
        return {"path": str(found.path), "serial": found.serial}

    def create_volume(like: dict[str, Any], request: str) -> dict[str, Any]:
        return volume_document(cloud.create_volume(host, read_volume(like), request))

    def list_volumes(states: bool = False) -> list[dict[str, Any]]:
        return [volume_document(volume, states=states) for volume in cloud.list_volumes()]

    def look_up(volume: str, states: bool = False) -> dict[str, Any] | None:
        found = cloud.look_up(volume)
        return volume_document(found, states=states) if found else None

    return {
        "me": lambda: machine_document(cloud.me(host)),
        "list_machines": lambda: [machine_document(machine) for machine in cloud.list_machines()],
        "list_volumes": list_volumes,
        "look_up": look_up,
        "write_tags": lambda volume, like: cloud.write_tags(host, volume, read_volume(like)),
        "attach": lambda volume: cloud.attach(host, volume),
        "device": device,
        "write_mark": lambda volume, mark: cloud.write_mark(host, volume, mark),
        "write_epoch": lambda volume, epoch, holder, generation: cloud.write_epoch(
            host, volume, epoch, holder, generation
        ),
        "release": lambda volume: cloud.release(host, volume),
        "create_volume": create_volume,
    }


@dataclass(frozen=True, slots=True)
class Operator:
    """The operator's calls: every public method is a call of the admin socket, under the same name."""

    cloud: Cloud

    def hosts(self) -> list[dict[str, Any]]:
        """Every living host, and every host that was declared dead and still runs."""
        found = [(host, self.cloud.is_running(host)) for host in self.cloud.registry.all_hosts()]
        return [{**asdict(host), "running": running} for host, running in found if running or not host.dead]

    def volumes(self) -> list[dict[str, Any]]:
        """Every volume, with and without tags."""
        return [self._volume(volume) for volume in self.cloud.volumes.everything()]

    def records(self) -> list[dict[str, Any]]:
        return [asdict(record) for record in KeptRecords(self.cloud.database).load()]

    def kill_host(self, host: str) -> None:
        self.cloud.kill_host(host)

    def freeze_host(self, host: str) -> None:
        self.cloud.freeze_host(host)

    def thaw_host(self, host: str) -> None:
        self.cloud.thaw_host(host)

    def declare_dead(self, host: str, kill: bool = True) -> None:
        self.cloud.declare_dead(host, kill=kill)

    def set_tags(self, volume: str, etcd_cluster: str, member: str, members: list[str]) -> None:
        """Change a volume's tags; empty strings remove them."""
        self.cloud.set_tags(volume, etcd_cluster, member, members)

    def delete_volume(self, volume: str) -> None:
        self.cloud.delete_volume(volume)

    def delete_free_volume(self, volume: str) -> None:
        self.cloud.delete_free_volume(volume)

    def power_off(self) -> list[str]:
        return list(self.cloud.power_off())

    def cut_host(self, host: str, down: bool) -> None:
        self.cloud.registry.find(host)
        network.cut(self.cloud.paths.switch, host, down=down)

    def create_founders(self, volumes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        made = self.cloud.create_founders([read_volume(document) for document in volumes])
        return [volume_document(each) for each in made]

    def calls(self) -> Mapping[str, Call]:
        names = [name for name in vars(type(self)) if not name.startswith("_") and name not in ("calls", "cloud")]
        return {name: getattr(self, name) for name in names}

    def _volume(self, volume: Volume) -> dict[str, Any]:
        image = self.cloud.paths.image(volume.id)
        number = disks.find(image)
        return {
            **volume_document(volume, states=True),
            "image": str(image),
            "device": f"/dev/loop{number[1]}" if number else None,
        }


def machine_document(machine: Machine) -> dict[str, Any]:
    """Without an empty `external`: agents of before that field refuse a document that has it."""
    return {name: value for name, value in asdict(machine).items() if name != "external" or value}


def volume_document(volume: Volume, *, states: bool = False) -> dict[str, Any]:
    """Without `state` unless the caller asked for states: older agents refuse the whole list for it."""
    return {name: value for name, value in asdict(volume).items() if name != "state" or states}


def read_volume(document: Any) -> Volume:
    """Decode the description of a wanted volume; an id in it is ignored."""
    if not isinstance(document, dict):
        raise InvalidRequest("a volume is a JSON object", saw=type(document).__name__)
    wanted: dict[str, type | tuple[type, ...]] = {
        "zone": str,
        "etcd_cluster": str,
        "member": str,
        "members": (list, tuple),
        "size": int,
    }
    wrong = [name for name, kind in wanted.items() if not isinstance(document.get(name), kind) or not document[name]]
    if wrong:
        raise InvalidRequest("the description of the volume is incomplete", want=", ".join(wrong))
    return Volume(
        id="",
        zone=document["zone"],
        etcd_cluster=document["etcd_cluster"],
        member=document["member"],
        members=tuple(document["members"]),
        size=document["size"],
        made_empty=True,
    )


def answer(calls: Mapping[str, Call], request: Mapping[str, Any]) -> Any:
    """Dispatch one request to its call, and return the result."""
    name = request.get("call")
    function = calls.get(name) if isinstance(name, str) else None
    if function is None:
        raise InvalidRequest(f"there is no call {name!r}", want=", ".join(sorted(calls)))
    arguments = {key: value for key, value in request.items() if key != "call"}
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        raise InvalidRequest(f"{name} cannot be called like this", saw=str(error)) from error
    return function(**arguments)
