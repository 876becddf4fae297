"""Tasks of nodeup, carried out by a program of its own: on a root folder, or inside a machine."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from protokube.nodeup.values import Task

DRIVER = (sys.executable, str(Path(__file__).with_name("driver.py")))
SECONDS = 120.0


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """What became of one task: what differed before and after, and the error."""

    changes: list[str]
    left: list[str]
    error: str
    kind: str

    @property
    def well(self) -> bool:
        return not self.error and not self.left


class Running:
    """The program, under way."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self.facts: dict[str, object] = {}
        self.done: list[Done] = []

    def next(self) -> bool:
        """Read one line; whether there was one."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            return False
        document = json.loads(line)
        if "said" in document:
            self.said.append(document["said"])
        elif "facts" in document:
            self.facts = document["facts"]
        else:
            self.done.append(Done(**document["outcome"]))
        return True

    def until_said(self, part: str) -> str:
        """The line with this in it, as soon as it is said."""
        while not any(part in each for each in self.said):
            assert self.next(), f"it ended and never said {part!r}: {self.said} {self.done}"
        return next(each for each in self.said if part in each)

    def wait(self) -> list[Done]:
        """Every outcome, at the end."""
        while self.next():
            continue
        self.process.wait(SECONDS)
        self.close()
        assert self.process.returncode == 0, "the program was killed, or failed"
        return self.done

    def one(self) -> Done:
        """The outcome of the only task."""
        (only,) = self.wait()
        return only

    def kill(self) -> None:
        """As `kill -9` does; not what it started."""
        for pid in descendants(self.process.pid):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if len(words) > 1 and b"python" in words[0] and words[1].endswith(b"driver.py"):
                os.kill(pid, 9)
        self.process.wait(SECONDS)
        self.close()

    def close(self) -> None:
        assert self.process.stdout
        self.process.stdout.close()


def descendants(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for each in found:
        try:
            found += map(int, Path(f"/proc/{each}/task/{each}/children").read_text().split())
        except OSError:  # it ended meanwhile
            continue
    return found


def driven(command: Sequence[str], tasks: Sequence[Task], root: str, **request: object) -> Running:
    """Start the program with these tasks."""
    values = [{"kind": type(task).__name__, "values": dataclasses.asdict(task)} for task in tasks]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    process.stdin.write(json.dumps({"root": root, "tasks": values, **request}))
    process.stdin.close()
    return Running(process)
