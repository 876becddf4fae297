"""Commands that outlived the run that started them.

A nodeup that is killed with SIGKILL cannot end its commands: they go on, and would change the machine while the next
run looks at it. So each one is written down while it runs, with the start time of its process, which proves that a
process is still the same. The next run waits for it, as long as the command might have taken, and then ends it.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import TryLater

FOLDER = "commands"
"""Below the folder of one root."""
EVERY = 0.05
SECONDS_TO_DIE = 30.0
"""How long one that is ended may take: what is stuck in the kernel cannot be ended at all."""


@dataclass(frozen=True, slots=True)
class Left:
    """A process group whose nodeup is gone."""

    pid: int
    command: str
    deadline: float
    """By the clock since boot, which all processes share."""


@contextmanager
def noted(folder: Path | None, pid: int, command: str, seconds: float) -> Iterator[None]:
    """Write down a command while it runs."""
    if folder is None:
        yield
        return
    file = folder / str(pid)
    data = {"started": start_of(pid), "command": command, "deadline": time.monotonic() + seconds}
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data), encoding="utf-8")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def start_of(pid: int) -> str:
    """When a process started, in ticks since boot; empty if there is none, or if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def left_by_killed_runs(folder: Path) -> list[Left]:
    """What still runs; notes about others are removed. For the one who holds the lock of this machine."""
    found = []
    for file in sorted(folder.glob("*")):
        if file.is_dir():  # none of ours, and in nobody's way
            continue
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            left = Left(int(file.name), str(data["command"]), float(data["deadline"]))
            alive = bool(data["started"]) and start_of(left.pid) == data["started"]
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, OSError):
            alive = False  # a note that was half written: its command had just been started
        if alive:
            found.append(left)
        else:
            file.unlink(missing_ok=True)
    return found


def wait_for(
    folder: Path, say: Callable[[str], None], stopped: Callable[[], bool], *, dying: float = SECONDS_TO_DIE
) -> None:
    """Wait until none is left; end those whose time is over. TryLater if one of them does not end even then."""
    reported: set[int] = set()
    while not stopped() and (left := left_by_killed_runs(folder)):
        for each in left:
            if each.pid not in reported:
                reported.add(each.pid)
                say(f"waiting for `{each.command}` (process {each.pid}), which an earlier run started")
            if (late := time.monotonic() - each.deadline) > 0:
                with suppress(ProcessLookupError):
                    os.killpg(each.pid, signal.SIGKILL)
            if late > dying:
                raise TryLater(
                    f"`{each.command}`, which an earlier run started, cannot be ended", saw=f"process {each.pid}",
                    hint=f"`cat /proc/{each.pid}/stack` shows where it hangs; a reboot ends it",
                )  # fmt: skip
        time.sleep(EVERY)
