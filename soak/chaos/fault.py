"""What a fault is: a small value, drawn by a seeded generator, that can be applied, undone and described.

Some faults end rightfully with a member that is refused until a person acts. Such a fault names the causes that
`status` may give for that, and knows what the person does.
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
    """One fault, aimed at one member; at none in particular if that is empty."""

    member: str = ""
    lasts: float = 0.0
    """Seconds between `apply` and `undo`."""

    kind: ClassVar[str]
    shortest: ClassVar[float] = 0.0
    longest: ClassVar[float] = 0.0
    """Between these two lies how long it lasts; 0 for what only the cluster can heal."""
    heals: ClassVar[float] = 120.0
    """Seconds after `undo` within which the cluster is ready again; generous, for a busy machine."""
    alone: ClassVar[bool] = False
    """Never together with another one: both at once would be more than a cluster can survive."""
    aimed: ClassVar[bool] = True
    causes: ClassVar[tuple[str, ...]] = ()
    """Patterns of what `status` says if the member stays refused; without any, it has to heal by itself."""

    @classmethod
    def draw(cls, chance: random.Random, members: Sequence[str]) -> Self:
        """Depends on nothing but the generator and the names of the members."""
        member = chance.choice(list(members)) if cls.aimed else ""
        return cls(member=member, lasts=cls.lasting(chance))

    @classmethod
    def lasting(cls, chance: random.Random) -> float:
        return round(chance.uniform(cls.shortest, cls.longest), 1)

    def apply(self, field: Field) -> None:
        """Do it. May raise for what is not there to be hit; the step then fails."""
        raise NotImplementedError

    def undo(self, field: Field) -> None:
        """Take it back, also after an `apply` that was cut short. Nothing, for what only the cluster can heal."""

    def mend(self, field: Field) -> None:
        """What the person does about a refused member."""
        raise NotImplementedError

    def describe(self) -> str:
        aim = f" {self.member}" if self.member else ""
        return f"{self.kind}{aim}" + (f" for {self.lasts:g} s" if self.lasts else "")

    def is_cause(self, text: str) -> bool:
        return any(re.search(each, text, re.IGNORECASE) for each in self.causes)
