"""What nodeup of one machine is told: everything that it needs to make it a master or a node, and no secret.

Made once by a command from the complete configuration (`derive_setup`), and handed over as JSON with the launch data.
Clouds store launch data, and show them to every process of the machine: so secrets are named here, never contained.
Nothing here depends on the machine's operating system; what follows from that is decided in `nodeup.model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from protokube.errors import InvalidRequest, Problem
from protokube.launch.boot import read_tree
from protokube.launch.setups.check import problems_of
from protokube.launch.setups.values import MachineSetup
from protokube.launch.setups.wire import decode, encode

__all__ = ["VERSION", "InvalidSetup", "MachineSetup", "from_tree", "read_setup", "to_tree"]

VERSION = 1
"""Of the document; greater after a change that earlier versions of protokube would misread."""


class InvalidSetup(InvalidRequest):
    """What a machine is told is not valid; has every problem."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(set(problems), key=lambda each: each.order))
        count = len(self.problems)
        lines = [f"  {line}" for each in self.problems for line in str(each).splitlines()]
        message = "\n".join([f"{count} problem{'' if count == 1 else 's'} in {name}", *lines])
        super().__init__(message, hint="it comes with the launch data; make them again")


def to_tree(setup: MachineSetup) -> dict[str, Any]:
    tree: dict[str, Any] = encode(setup)
    return {"version": VERSION, **tree}


def from_tree(tree: Any, name: str = "setup.json") -> MachineSetup:
    """InvalidSetup with the path of everything that is wrong; InvalidRequest for one of a newer protokube."""
    if not isinstance(tree, dict):
        raise InvalidRequest(f"{name} holds no JSON object", saw=type(tree).__name__, hint="make it again")
    version = tree.get("version")
    if type(version) is int and version > VERSION:
        raise InvalidRequest(
            f"{name} was made by a newer version of protokube",
            saw=f"version {version}; this protokube reads up to {VERSION}",
            hint="install the newer version on this machine",
        )
    problems: list[Problem] = []
    if type(version) is not int or version < 1:
        problems.append(Problem(path="version", message="is not the version of this format", hint=f"it is {VERSION}"))
    rest = {each: value for each, value in tree.items() if each != "version"}
    setup = decode(MachineSetup, rest, "", problems)
    if not problems:
        problems += problems_of(setup)
    if problems:
        raise InvalidSetup(name, problems)
    assert isinstance(setup, MachineSetup)
    return setup


def read_setup(file: Path) -> MachineSetup:
    """InvalidRequest if it cannot be read."""
    tree = read_tree(file, missing="it comes with the launch data of a machine", broken="make it again")
    return from_tree(tree, str(file))
