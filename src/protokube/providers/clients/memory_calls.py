"""The calls that machines and commands make to the memory cloud, and the state behind them."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.providers.groups import Group
from protokube.providers.machines import Machine
from protokube.providers.volumes import AttachmentState, Volume, VolumeTaken, epoch_key, need_free, need_holder


@dataclass(slots=True)
class Life:
    """A machine and its state."""

    machine: Machine
    running: bool = True
    frozen: bool = False
    declared_dead: bool = False


class MemoryCalls:
    """Volumes and machines of one cluster. Thread-safe; each call of a machine names it."""

    def __init__(self, *volumes: Volume, machines: Iterable[Machine] = (), zonal: bool = False) -> None:
        self.zonal = zonal
        self.consistent = True
        """Whether reads are consistent with earlier writes; a test with stale lists sets it to False."""
        self.down = False
        """The cloud is unreachable: every call raises TryLater and does nothing."""
        self.answers_lost = False
        """Replies get lost: every call is carried out, and then raises TryLater."""
        self.detaches_slowly = False
        """A volume that is detached stays `detaching`, and attached, until MemoryCloud.finish_detaching."""
        self.calls: Counter[str] = Counter()
        """Number of calls by name, successful or not."""
        self.changes = 0
        """Rises with every change of a volume or a machine."""
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._volumes = {volume.id: volume for volume in volumes}
        self._lives = {machine.id: Life(machine) for machine in machines}
        self._ids = {*self._volumes, *self._lives}
        self._requests: dict[tuple[str, str], Volume] = {}
        self.groups: dict[str, Group] = {}
        """Instance groups by name; MemoryGroups writes them within `operator_call`."""

    @contextmanager
    def call(self, name: str, machine: str, *, writes: bool = False) -> Iterator[Machine]:
        """One request: counted, serialised by the lock, and subject to every injected fault."""
        with self._lock:
            self.calls[name] += 1
            life = self._life(machine)
            if self.down or life.frozen or not life.running:
                raise TryLater("the memory cloud does not answer", saw="down" if self.down else f"{machine} is cut off")
            if writes and life.declared_dead:
                raise Refused(f"{machine} was declared dead", want="calls of machines that exist")
            yield life.machine
            self._lose_answer()

    @contextmanager
    def operator_call(self, name: str) -> Iterator[None]:
        """One request of a command: as `call`, without a machine."""
        with self._lock:
            self.calls[name] += 1
            if self.down:
                raise TryLater("the memory cloud does not answer", saw="down")
            yield
            self._lose_answer()

    def volumes(self) -> list[Volume]:
        with self._lock:
            return sorted(self._volumes.values(), key=lambda volume: volume.id)

    def listed(self) -> list[Volume]:
        """All tagged volumes."""
        return [each for each in self.volumes() if each.tagged]

    def look_up(self, volume: str) -> Volume | None:
        with self._lock:
            return self._volumes.get(volume)

    def write_tags(self, volume: Volume, machine: str) -> None:
        with self._lock:
            found = self._find(volume.id)
            need_holder(found, machine)
            tags = {name: getattr(volume, name) for name in ("etcd_cluster", "member", "members")}
            self._keep(replace(found, **tags, tagged=True))

    def machines(self) -> list[Machine]:
        with self._lock:
            return sorted(self.machines_by_age(), key=lambda machine: machine.id)

    def machines_by_age(self) -> list[Machine]:
        """All machines that were not declared dead, oldest first."""
        with self._lock:
            return [life.machine for life in self._lives.values() if not life.declared_dead]

    def attach(self, volume: str, machine: Machine) -> None:
        with self._lock:
            found = self._find(volume)
            _need_master(machine)
            between = found.state in (AttachmentState.DETACHING, AttachmentState.BUSY)
            if found.attached_to == machine.id and not between:
                return
            if self.zonal and found.zone != machine.zone:
                raise Refused(f"{volume} is in zone {found.zone}, {machine.id} in {machine.zone}")
            if between:
                raise TryLater(found.between)
            if not found.is_free:
                raise VolumeTaken(found.between or f"attached to {found.attached_to}")
            self._keep(replace(found, attached_to=machine.id))

    def find(self, volume: str) -> Volume:
        with self._lock:
            return self._find(volume)

    def write_mark(self, volume: str, mark: str, machine: Machine) -> None:
        with self._lock:
            found = self._find(volume)
            need_holder(found, machine.id)
            self._keep(replace(found, mark=mark))

    def write_epoch(self, volume: str, epoch: int, holder: str, machine: Machine, *, generation: str) -> None:
        with self._lock:
            found = self._find(volume)
            need_holder(found, machine.id, holder)
            if epoch > found.epoch_for(generation):
                key = epoch_key(volume, generation)
                self._keep(replace(found, epoch=epoch, epoch_of=key, last_holder=holder))

    def release(self, volume: str, machine: str) -> None:
        with self._lock:
            found = self._find(volume)
            if found.attached_to == machine:
                self._detach(found)

    def create_volume(self, like: Volume, request: str, machine: Machine) -> Volume:
        _need_master(machine)
        if not request:
            raise InvalidRequest("a volume is made for a request", want="a request that is not empty")
        with self._lock:
            return self._create(like, ("machine", request), request)

    def create_founders(self, likes: Iterable[Volume]) -> list[Volume]:
        """Create the first volumes of a cluster; idempotent."""
        with self._lock:
            return [self._create(like, ("founder", f"{like.etcd_cluster}/{like.member}"), "") for like in likes]

    def delete_free_volume(self, volume: str) -> None:
        """Delete a volume that no machine holds; no effect if there is none."""
        with self._lock:
            if volume in self._volumes:
                need_free(self._volumes[volume])
                del self._volumes[volume]
                self.changes += 1

    def _detach(self, volume: Volume) -> None:
        if self.detaches_slowly:
            self._keep(replace(volume, state=AttachmentState.DETACHING))
        else:
            self._keep(replace(volume, attached_to=None, state=AttachmentState.SETTLED))

    def _lose_answer(self) -> None:
        if self.answers_lost:
            raise TryLater("the answer of the memory cloud was lost")

    def _create(self, like: Volume, key: tuple[str, str], request: str) -> Volume:
        if key not in self._requests:
            made = self._never_used(f"vol-{next(self._numbers):08x}")
            self._requests[key] = replace(like.as_made(), id=made, made_empty=True, request=request)
            self._keep(self._requests[key])
        return self._requests[key]

    def _keep(self, volume: Volume) -> None:
        if self._volumes.get(volume.id) != volume:
            self._volumes[volume.id] = volume
            self.changes += 1

    def _never_used(self, name: str) -> str:
        if name in self._ids:
            raise ValueError(f"{name} was used before")
        self._ids.add(name)
        return name

    def _life(self, machine: str) -> Life:
        try:
            return self._lives[machine]
        except KeyError:
            raise Refused(f"there is no machine {machine}", hint="add_machine first") from None

    def _find(self, volume: str) -> Volume:
        try:
            return self._volumes[volume]
        except KeyError:
            raise Refused(f"there is no volume {volume}") from None


def _need_master(machine: Machine) -> None:
    if not machine.master:
        raise Refused(f"{machine.id} is no master", want="only masters make and attach volumes")
