"""Whatever happens, and wherever the daemon is killed: what the local cloud says and what the kernel says agree."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.volumes import a_volume, nothing_left_behind
from clusters.local import PlainProcesses
from protokube.errors import ProtokubeError
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.cloud.cloud import Cloud
from protokube.local.disk import disks, loops

HOSTS, VOLUMES = 3, 2

steps = st.tuples(
    st.sampled_from(
        ["attach"] * 5
        + ["die", "declare", "declare without killing", "lose", "new host", "crash"]
        + ["crash after the claim", "crash after the burial", "crash after the cut", "crash after the deletion"]
    ),
    st.integers(0, HOSTS - 1),
    st.integers(0, VOLUMES - 1),
)


class World:
    def __init__(self, folder: Path) -> None:
        self.paths = Paths.at(folder / "dev")
        self.paths.create()
        self.machinery = PlainProcesses()
        self.database = Database(self.paths.database)
        self.cloud = Cloud(self.paths, self.database, self.machinery)
        self.hosts = [self.new_host() for _ in range(HOSTS)]
        self.volumes = [self.new_volume(number) for number in range(VOLUMES)]

    def new_host(self) -> str:
        name = self.cloud.registry.add("m", zone="local").name
        self.cloud.registry.write_started(name, *self.machinery.start())
        return name

    def new_volume(self, number: int) -> str:
        return self.cloud.create_founders([a_volume(member=f"m{number}")])[0].id

    def crash(self) -> None:
        """The daemon is killed, and starts anew: nothing but the file and the kernel remembers."""
        self.database.close()
        self.database = Database(self.paths.database)
        self.cloud = Cloud(self.paths, self.database, self.machinery)
        self.cloud.restore()

    def delete_all_but_the_image(self, volume: str) -> None:
        found = self.cloud.volumes.find(volume)
        disks.detach(self.paths.image(volume), patience=0)
        self.cloud._hide_device(found)
        self.cloud.volumes.delete(volume)

    def do(self, what: str, host: int, volume: int) -> None:
        name, disk = self.hosts[host], self.volumes[volume]
        image = self.paths.image(disk)
        steps: dict[str, Callable[[], object]] = {
            "attach": lambda: self.cloud.attach(name, disk),
            "die": lambda: self.cloud.kill_host(name),
            "declare": lambda: self.cloud.declare_dead(name),
            "declare without killing": lambda: self.cloud.declare_dead(name, kill=False),
            "lose": lambda: self.cloud.delete_volume(disk),
            "crash": lambda: None,
            "crash after the claim": lambda: self.cloud.volumes.claim(disk, name),
            "crash after the burial": lambda: self.cloud.registry.mark_dead(name),
            "crash after the cut": lambda: disks.detach(image, patience=0),
            "crash after the deletion": lambda: self.delete_all_but_the_image(disk),
        }
        try:
            if what == "new host":
                self.hosts[host] = self.new_host()
            else:
                steps[what]()
        except ProtokubeError:
            pass
        if what.startswith("crash"):
            self.crash()

    def check(self) -> None:
        living = {host.name: host.pid for host in self.cloud.registry.living()}
        listed = {volume.id: volume.attached_to for volume in self.cloud.list_volumes()}
        shown = {}
        for volume, holder in listed.items():
            usable = [loop.number for loop in loops.bound(self.paths.image(volume)) if not loop.is_cut]
            assert len(usable) == (0 if holder is None else 1), (volume, holder, usable)
            if holder is not None:
                assert holder in living
                shown[living[holder], f"pk-{volume}"] = usable[0]
        running = {host.pid for host in self.cloud.registry.all_hosts() if self.cloud.is_running(host)}
        assert {key: value for key, value in self.machinery.devices.items() if key[0] in running} == {
            key: value for key, value in shown.items() if key[0] in running
        }
        assert {path.stem for path in self.paths.disks.iterdir()} == set(listed)

    def close(self) -> None:
        self.machinery.close()
        self.database.close()


@settings(max_examples=10, deadline=None, database=None)
@given(st.lists(steps, min_size=5, max_size=20))
def test_the_database_and_the_kernel_never_disagree(history: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, nothing_left_behind(Path(folder).resolve()):
        world = World(Path(folder))
        try:
            for step in history:
                world.do(*step)
                world.check()
        finally:
            world.close()
