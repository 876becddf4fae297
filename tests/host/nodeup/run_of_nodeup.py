"""One run of nodeup for the tasks of a test, as a process of its own: `direct` with everything below it.

Reads a request from its input, as JSON: `root`, `run` (the folder for locks and notes), and `tasks`.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

from protokube.cli.nodeup.command import direct
from protokube.cli.shared.failure import show_failure
from protokube.errors import ProtokubeError
from protokube.nodeup.engine.control import Control
from protokube.nodeup.facts import Facts
from protokube.nodeup.host_facts import read_facts
from protokube.nodeup.provision import Place
from protokube.nodeup.run import Patience
from protokube.nodeup.values import Packages, Task

PATIENCE = Patience(attempts=2, first=0.0)


def prepared(root: Path, tasks: tuple[Task, ...]) -> tuple[Facts, tuple[Task, ...]]:
    return read_facts(root, names=()), tasks


def main() -> int:
    request = json.load(sys.stdin)
    root = Path(request["root"])
    tasks = tuple(Packages(names=tuple(names)) for names in request["packages"])
    place = Place(root=root, run=Path(request["run"]), patience=PATIENCE)
    try:
        return direct(partial(prepared, root, tasks), place, Control(), "text", retry=False)
    except ProtokubeError as error:
        return show_failure(error, ())


if __name__ == "__main__":
    sys.exit(main())
