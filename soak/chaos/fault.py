"""The base class of faults: a value, drawn by a seeded generator, that can be applied, undone and described.

After some faults it is correct that a member is refused until a person acts. Such a fault has patterns of the causes
that `status` may give, and implements what the person does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from soak.chaos.field import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault, aimed at one member; at none if `member` is empty."""

    member: str = ""
    lasts: float = 0.0
    """Seconds between `apply` and `undo`."""

    kind: ClassVar[str]
    shortest: ClassVar[float] = 0.0
    longest: ClassVar[float] = 0.0
    """The range of `lasts`; 0 for faults that only the cluster can heal."""
    heals: ClassVar[float] = 120.0
    """Seconds after `undo` within which the cluster must be ready again; generous, for a busy machine."""
    alone: ClassVar[bool] = False
    """Never combined with another fault: both at once would be more than a cluster can survive."""
    aimed: ClassVar[bool] = True
    causes: ClassVar[tuple[str, ...]] = ()
    """Patterns of the text in `status` if the member stays refused; without any, the cluster must heal by itself."""

    @classmethod
    def draw(cls, chance: random.Random, members: Sequence[str]) -> Self:
        """Draw a fault; depends only on the generator and the member names."""
        member = chance.choice(list(members)) if cls.aimed else ""
        return cls(member=member, lasts=cls.lasting(chance))

    @classmethod
    def lasting(cls, chance: random.Random) -> float:
        return round(chance.uniform(cls.shortest, cls.longest), 1)

    def apply(self, field: Field) -> None:
        """Inject the fault. May raise if its target does not exist; then the step fails."""
        raise NotImplementedError

    def undo(self, field: Field) -> None:
        """Undo the fault, also after an interrupted `apply`. Does nothing for faults that only the cluster can heal."""

    def mend(self, field: Field) -> None:
        """Do what a person does about a refused member."""
        raise NotImplementedError

    def describe(self) -> str:
        aim = f" {self.member}" if self.member else ""
        return f"{self.kind}{aim}" + (f" for {self.lasts:g} s" if self.lasts else "")

    def is_cause(self, text: str) -> bool:
        return any(re.search(each, text, re.IGNORECASE) for each in self.causes)
