"""Whatever happens in whatever order: the memory cloud and the local one give the same answers.

Scenarios run on the memory cloud, users on the others; this is why what passes there says something about them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.volumes import a_volume
from conformance.volumes.worlds import FloatingWorld, LocalWorld, MemoryWorld
from protokube.errors import ProtokubeError
from protokube.providers.volumes import Volume

MACHINES, VOLUMES = 3, 3
MARKS = ("", "formatting:1", "forming", "formed")

Step = tuple[str, int, int, int]
steps = st.tuples(
    st.sampled_from(
        ["attach"] * 4 + ["release", "release", "mark", "epoch", "create", "device", "die", "die", "lose", "down", "up"]
    ),
    st.integers(0, MACHINES - 1),
    st.integers(0, VOLUMES - 1),
    st.integers(0, 3),
)


class History:
    """One world, driven by numbers; ids are translated, since each world makes its own."""

    def __init__(self, world: FloatingWorld) -> None:
        self.world = world
        self.machines = [world.add_machine() for _ in range(MACHINES)]
        self.views = [world.seen_from(machine) for machine in self.machines]
        self.volumes = [v.id for v in world.create_founders(*(a_volume(member=f"{n}") for n in range(VOLUMES)))]
        self.outside = world.seen_from(world.add_machine())

    def do(self, step: Step) -> object:
        try:
            return self.told(self.carry_out(*step))
        except ProtokubeError as error:
            return type(error)

    def carry_out(self, what: str, machine: int, volume: int, number: int) -> object:
        view, name = self.views[machine], self.volumes[volume]
        match what:
            case "create":
                return view.create_volume(a_volume(member=f"{volume}"), request=f"r{number}")
            case "device":
                return view.device(name).serial
            case "attach":
                view.attach(name)
            case "release":
                view.release(name)
            case "mark":
                view.write_mark(name, MARKS[number])
            case "epoch":
                view.write_epoch(name, number + 1, self.machines[machine], generation=f"g{number % 2}")
            case "die":
                self.world.declare_dead(self.machines[machine])
            case "lose":
                self.world.delete_volume(name)
            case _:
                self.world.go_down(what == "down")
        return None

    def told(self, result: object) -> object:
        if isinstance(result, Volume):
            holder = self.machines.index(result.attached_to) if result.attached_to else None
            last = self.machines.index(result.last_holder) if result.last_holder else ""
            epoch_of = result.epoch_of.replace(result.id, "this volume")
            return replace(result, id="", attached_to=str(holder), last_holder=str(last), epoch_of=epoch_of)
        return self.volumes.index(result) if result in self.volumes else result

    def state(self) -> Sequence[object]:
        self.world.go_down(False)
        return sorted(str(self.told(volume)) for volume in self.outside.list_volumes())


@settings(max_examples=25, deadline=None, database=None)
@given(st.lists(steps, max_size=25))
def test_the_memory_cloud_and_the_local_one_agree(history: list[Step]) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, LocalWorld(Path(folder) / "dev") as local:
        left, right = History(MemoryWorld()), History(local)

        for step in history:
            assert left.do(step) == right.do(step), step

        assert left.state() == right.state()
