"""Check that all members report the same revisions. Pure.

Members that replay one log on top of different data end with the same values, and their histories are linearizable. But
their revisions differ: a value is written once, so every member must report the same revision for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from soak.chaos.history import Operation, Result


@dataclass
class Revisions:
    """The revision of every value that was written or read."""

    known: dict[str, Operation] = field(default_factory=dict)

    def feed(self, operations: Iterable[Operation]) -> str:
        """A message about the first contradiction; empty if there is none."""
        for each in operations:
            if each.result is not Result.OK or each.held is None:
                continue
            before = self.known.setdefault(each.held, each)
            if before.revision != each.revision:
                return (
                    f"{each.held} has revision {before.revision} through {before.client} and {each.revision} through"
                    f" {each.client}: the members hold different histories"
                )
        return ""
