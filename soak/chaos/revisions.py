"""Do all members count the same revisions? Pure.

Members that replay one log on top of different data hold the same values in the end, and histories of values have an
explanation. Their revisions differ: a value is written once, so it has one revision, whichever member is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from soak.chaos.history import Operation, Result


@dataclass
class Revisions:
    """Of every value that was written or seen."""

    known: dict[str, Operation] = field(default_factory=dict)

    def feed(self, operations: Iterable[Operation]) -> str:
        """The first contradiction, in words; empty if there is none."""
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
