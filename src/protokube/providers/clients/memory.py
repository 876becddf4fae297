"""An in-memory cloud with machines, volumes and injected faults, for tests and trials.

It follows the strictest rules of real clouds, so that code that passes here passes there: only declaring a machine dead
frees its volumes, ids are never reused, and a machine that was declared dead may read but not write.
Thread-safe. Tests inject faults with `down`, `answers_lost`, `detaches_slowly` and `freeze`.
"""

from __future__ import annotations

from dataclasses import replace

from protokube.providers.clients.memory_calls import Life, MemoryCalls
from protokube.providers.machines import Machine
from protokube.providers.machines.memory import MemoryMachines
from protokube.providers.volumes import AttachmentState
from protokube.providers.volumes.memory import MemoryVolumes


class Seen(MemoryVolumes, MemoryMachines):
    """The whole cloud as one machine sees it: a VolumeProvider and a MachineProvider in one."""


class MemoryCloud(MemoryCalls):
    """The memory cloud as tests use it: they change it and inject faults."""

    def add_machine(
        self,
        named: str = "",
        *,
        name: str = "",
        zone: str = "local",
        group: str = "masters",
        address: str = "",
        external: str = "",
        master: bool = True,
    ) -> Machine:
        """A new machine; omitted values are generated, and no address or id is used twice. Without `external` it has no
        external address."""
        with self._lock:
            number = next(self._numbers)
            made = self._never_used(named or f"i-{number:08x}")
            address = address or f"10.77.{number // 250}.{number % 250 + 1}"
            machine = Machine(
                id=made,
                name=name or made,
                zone=zone,
                address=address,
                group=group,
                master=master,
                external=external,
            )
            self._lives[made] = Life(machine)
            self.changes += 1
            return machine

    def kill_machine(self, machine: str) -> None:
        """Stop a machine without declaring it dead: its volumes stay attached to it."""
        with self._lock:
            self._life(machine).running = False

    def freeze(self, machine: str) -> None:
        """Suspend a machine until it is thawed: it neither runs nor reaches the cloud, and does not notice."""
        with self._lock:
            self._life(machine).frozen = True

    def thaw(self, machine: str) -> None:
        with self._lock:
            self._life(machine).frozen = False

    def declare_dead(self, machine: str) -> None:
        """Detach all its volumes for good, whether it still runs or not; nothing else detaches a volume by force."""
        with self._lock:
            self._life(machine).declared_dead = True
            for volume in self.volumes():
                if volume.attached_to == machine:
                    self._detach(volume)
            self.changes += 1

    def finish_detaching(self) -> None:
        """Complete what `detaches_slowly` has begun; from now on, detaching takes no time again."""
        with self._lock:
            self.detaches_slowly = False
            for volume in self.volumes():
                if volume.state is AttachmentState.DETACHING:
                    self._detach(volume)

    def delete_volume(self, volume: str) -> None:
        """Delete a volume with its data, attached or not."""
        with self._lock:
            self._find(volume)
            del self._volumes[volume]
            self.changes += 1

    def strip_tags(self, volume: str) -> None:
        """Remove the tags, as some tool might: the volume stays attached, but is in no list."""
        with self._lock:
            self._keep(replace(self._find(volume), etcd_cluster="", member="", members=(), tagged=False))

    def holder(self, volume: str) -> str | None:
        """The machine that can reach the disk now; a fake disk checks this before every write."""
        with self._lock:
            return self._find(volume).attached_to

    def seen_from(self, machine: str) -> Seen:
        return Seen(self, machine)
