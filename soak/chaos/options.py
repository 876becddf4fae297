"""The options of a run, and the command that repeats it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from soak.chaos.catalog import KINDS

PER_SEED = 12
"""Default number of steps with one seed; then the next seed runs on a new cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All options except the time limit."""

    section: str = "chaos"
    seed: int | None = None
    steps: int | None = None
    kinds: Sequence[str] = field(default_factory=lambda: tuple(KINDS))
    masters: int = 3
    logs: Path | None = None
    """The folder to which the logs of a failed seed are copied."""

    @property
    def per_seed(self) -> int:
        return self.steps or PER_SEED

    def replay(self, seed: int, steps: int) -> str:
        """The command that repeats the same schedule."""
        words = [self.section, f"--seed {seed}", f"--steps {steps}"]
        chosen = self.section == "chaos" and set(self.kinds) != set(KINDS)
        words += [f"--faults {','.join(self.kinds)}"] if chosen else []
        words += [f"--masters {self.masters}"] if self.masters != 3 else []
        return f'make soak SOAK="{" ".join(words)}"'


def read_kinds(text: str) -> tuple[str, ...]:
    """Parse `kill,freeze`; ValueError names an unknown kind."""
    kinds = tuple(each.strip() for each in text.split(",") if each.strip())
    if unknown := [each for each in kinds if each not in KINDS]:
        raise ValueError(f"there is no fault {unknown[0]}; there are {', '.join(KINDS)}")
    return kinds
