"""Carry out tasks on the machine this runs on, or on a root folder: a program of its own, so that it can be killed.

`driver.py` reads a request from its input, as JSON: `root`, and `tasks` with their kind and values. It writes one JSON
document per line: what is said meanwhile, then what became of each task. It imports nothing of the tests: a machine
gets a copy of it, and of protokube.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from protokube.errors import ProtokubeError, TryLater
from protokube.nodeup.host_facts import active_unit, has_lists, read_facts, refuse_unfit
from protokube.nodeup.machine import Machine, Ran, Say
from protokube.nodeup.packages.apt import update_lists
from protokube.nodeup.values import KINDS, Task


class Programs:
    """Runs programs of a root."""

    def __init__(self, root: Path) -> None:
        self._enter = [] if root == Path("/") else ["chroot", str(root)]

    def __call__(
        self,
        words: Sequence[str],
        *,
        seconds: float = 600.0,
        environment: dict[str, str] | None = None,
        say: Say | None = None,
    ) -> Ran:
        command = [*self._enter, *words]
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        try:
            ran = subprocess.run(command, env=environment, timeout=seconds, check=False, **options)
        except subprocess.TimeoutExpired as error:
            raise TryLater(f"{words[0]} took longer than {seconds:.0f} s") from error
        return Ran(ran.returncode, ran.stdout.decode(errors="replace"))


def write(**document: object) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def say(line: str) -> None:
    write(said=line)


def carry_out(task: Task, machine: Machine) -> dict[str, object]:
    """Look, make it so, look again, as the runner does."""
    module = importlib.import_module(f"protokube.nodeup.tasks.{type(task).__name__.lower()}")
    told: dict[str, object] = {"changes": [], "left": [], "error": "", "kind": ""}
    try:
        changes = module.look(task, machine)
        told["changes"] = [str(each) for each in changes]
        if changes:
            module.apply(task, changes, machine, say)
            told["left"] = [str(each) for each in module.look(task, machine)]
    except ProtokubeError as error:
        told |= {"error": str(error), "kind": type(error).__name__}
    return told


def main() -> None:
    request = json.load(sys.stdin)
    root = Path(request["root"])
    if request.get("update"):
        unread = Machine(facts=read_facts(root, names=()), run=Programs(root), root=root)
        say(f"lists before: {has_lists(root)}, not fetched: {update_lists(unread, say)!r}, after: {has_lists(root)}")
    facts = dataclasses.replace(read_facts(root, names=request.get("names", ())), **request.get("facts", {}))
    write(facts=dataclasses.asdict(facts))
    if request.get("units"):
        say(f"active: {active_unit('SYSTEM', request['units'])}")
    try:
        refuse_unfit(facts, root)
    except ProtokubeError as error:
        say(str(error))
    machine = Machine(facts=facts, run=Programs(root), root=root)
    kinds = {kind.__name__: kind for kind in KINDS}
    for each in request["tasks"]:
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in each["values"].items()}
        write(outcome=carry_out(kinds[each["kind"]](**values), machine))


if __name__ == "__main__":
    main()
