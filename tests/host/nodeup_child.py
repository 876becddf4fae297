"""Runs of nodeup in processes that may be killed: each in a child, inside of a root by chroot, so that it is `/` there.

Reads one JSON object per line: where the root is, and when the child kills itself: before the nth change of a file
system (`step`), at the nth event of the run (`event`), or never. Answers with the exit status and the outcomes.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builders.nodeup import DEBIAN, Heard
from builders.nodeup_machine import SERVED, the_tasks
from protokube.nodeup.catalog import KINDS
from protokube.nodeup.changes import Change, Outcome
from protokube.nodeup.engine.control import Control
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.provision import Place, provision
from protokube.nodeup.values import Unit

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.symlink", "os.chown", "os.chmod", "os.truncate", "os.link"}
MODULES = ("file", "directory", "link", "gone", "group", "user", "command", "sysctl", "module")


class Served:
    """Implements UnitKind: the process of a unit has read its configuration when it was started."""

    lane = ""

    def look(self, wanted: Unit, machine: Machine, /) -> Sequence[Change]:
        return ()

    def apply(self, wanted: Unit, changes: Sequence[Change], machine: Machine, say: Say, /) -> None:
        raise AssertionError(f"nothing of it differs: {changes}")

    def restart(self, wanted: Unit, machine: Machine, say: Say, /) -> bool:
        Path(SERVED).write_bytes(Path("/etc/web/conf").read_bytes())
        with Path("/run/restarts").open("a") as file:
            file.write("restarted\n")
        return True

    def started_at(self, name: str, machine: Machine, /) -> float | None:
        return 1.0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Dying(Heard):
    """Ends the process at the nth event."""

    def __init__(self, last: int | None) -> None:
        super().__init__()
        self.left = last

    def _event(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                die()

    def began(self, key: str) -> None:
        self._event()

    def ended(self, outcome: Outcome) -> None:
        super().ended(outcome)
        self._event()


def dying_at_step(number: int) -> None:
    left, lock = [number], threading.Lock()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        makes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_CREAT | os.O_WRONLY)
        if makes or event in CHANGES:
            with lock:
                left[0] -= 1
                if left[0] < 0:
                    die()

    sys.addaudithook(hook)


def run(asked: dict[str, Any]) -> list[tuple[str, str, str]]:
    os.chroot(asked["root"])
    os.chdir("/")
    if asked.get("step") is not None:
        dying_at_step(asked["step"])
    place = Place(kinds={**KINDS, Unit: Served()})
    trace = provision(lambda: (DEBIAN, the_tasks(asked["version"])), place, Dying(asked.get("event")), Control())
    return [(each.key, str(each.result), each.why) for each in trace.outcomes]


def in_a_child(asked: dict[str, Any]) -> dict[str, Any]:
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(reader)
        os.write(writer, json.dumps(run(asked)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    return {"status": status, "outcomes": json.loads(answer or b"[]")}


def main() -> None:
    for name in MODULES:
        importlib.import_module(f"protokube.nodeup.tasks.{name}")
    for line in sys.stdin:
        sys.stdout.write(json.dumps(in_a_child(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
