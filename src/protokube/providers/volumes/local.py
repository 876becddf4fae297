"""Volumes of the local cloud, seen from the host that owns the socket, and by the operator over the admin socket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from protokube.errors import InvalidRequest
from protokube.host import Device
from protokube.providers.clients.local import LocalClient
from protokube.providers.volumes import AttachmentState, Lock, Volume

FIELDS = {field.name for field in fields(Volume)}


def decode_volume(document: dict[str, Any]) -> Volume:
    """Fields that only a newer daemon knows are ignored; in a state that only it knows, the volume is busy."""
    text = document.get("state", AttachmentState.SETTLED)
    state = AttachmentState(text) if text in set(AttachmentState) else AttachmentState.BUSY
    known = {name: value for name, value in document.items() if name in FIELDS}
    return Volume(**{**known, "members": tuple(document["members"]), "state": state})


class LocalVolumes:
    """Implements VolumeProvider."""

    lock = Lock.ATTACHMENT
    zonal = False
    consistent = True

    def __init__(self, client: LocalClient) -> None:
        self.client = client

    def list_volumes(self) -> Sequence[Volume]:
        return [decode_volume(each) for each in self._read("list_volumes")]

    def look_up(self, volume: str) -> Volume | None:
        found = self._read("look_up", volume=volume)
        return decode_volume(found) if found else None

    def write_tags(self, volume: Volume) -> None:
        self.client.call("write_tags", volume=volume.id, like=asdict(volume))

    def attach(self, volume: str) -> None:
        self.client.call("attach", volume=volume)

    def device(self, volume: str) -> Device:
        reply = self.client.call("device", volume=volume)
        return Device(path=Path(reply["path"]), serial=reply["serial"])

    def write_mark(self, volume: str, mark: str) -> None:
        self.client.call("write_mark", volume=volume, mark=mark)

    def write_epoch(self, volume: str, epoch: int, holder: str, *, generation: str) -> None:
        self.client.call("write_epoch", volume=volume, epoch=epoch, holder=holder, generation=generation)

    def release(self, volume: str) -> None:
        self.client.call("release", volume=volume)

    def create_volume(self, like: Volume, *, request: str) -> Volume:
        return decode_volume(self.client.call("create_volume", like=asdict(like), request=request))

    def _read(self, call: str, **arguments: str) -> Any:
        """Volumes with their states; without them from an older daemon, which refuses the argument."""
        try:
            return self.client.call(call, **arguments, states=True)
        except InvalidRequest:
            return self.client.call(call, **arguments)


class LocalVolumePool:
    """Implements VolumePool. The socket belongs to one cluster, so an id of another cluster is unknown there."""

    def __init__(self, admin: LocalClient) -> None:
        self.admin = admin

    def list_volumes(self) -> Sequence[Volume]:
        return [decode_volume(each) for each in self.admin.call("volumes")]

    def create_founders(self, likes: Sequence[Volume]) -> Sequence[Volume]:
        made = self.admin.call("create_founders", volumes=[asdict(each) for each in likes])
        return [decode_volume(each) for each in made]

    def delete(self, volume: str) -> None:
        self.admin.call("delete_free_volume", volume=volume)
