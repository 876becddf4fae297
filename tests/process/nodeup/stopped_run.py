"""One run of nodeup as a process, on a root that is given; its second task lasts until somebody stops it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from builders.nodeup import DEBIAN
from protokube.cli.nodeup.live import Live
from protokube.errors import ProtokubeError
from protokube.nodeup.catalog import KINDS
from protokube.nodeup.changes import Change
from protokube.nodeup.commands import MachineCommands
from protokube.nodeup.engine.control import Control
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.provision import Place, provision
from protokube.nodeup.run import RunControl
from protokube.nodeup.values import Command, File, Task


@dataclass
class Outside:
    """Implements Kind for commands that run outside of the root, which has no programs."""

    stopping: threading.Event
    lane = ""

    def look(self, wanted: Command, machine: Machine, /) -> Sequence[Change]:
        return (Change("check", "ends with 1", "ends with 0"),)

    def apply(self, wanted: Command, changes: Sequence[Change], machine: Machine, say: Say, /) -> None:
        MachineCommands(stopping=self.stopping)(wanted.run, say=say)


def tasks(owner: str, group: str, root: str) -> tuple[Task, ...]:
    script = f"echo working; echo $$ > {root}/pid; exec sleep 1000"
    return (
        File(path="/first", content=b"1", owner=owner, group=group),
        Command(name="long", check=("false",), run=("sh", "-c", script), after=("file /first",)),
        File(path="/last", content=b"2", owner=owner, group=group, after=("command long",)),
    )


def main(root: str, run: str, owner: str, group: str) -> None:
    control: RunControl = Control()
    place = Place(root=Path(root), run=Path(run), kinds={**KINDS, Command: Outside(control.stopping)})
    with control.stopped_by_signals():
        try:
            trace = provision(lambda: (DEBIAN, tasks(owner, group, root)), place, Live(), control)
        except ProtokubeError as error:
            sys.exit(str(error))
    sys.stdout.write(f"end: {trace.end}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
