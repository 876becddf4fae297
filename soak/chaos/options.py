"""What a run is asked for, and how to ask for it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from soak.chaos.catalog import KINDS

PER_SEED = 12
"""Steps with one seed, unless asked otherwise: then comes a new cluster with the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All of it but the time limit."""

    section: str = "chaos"
    seed: int | None = None
    steps: int | None = None
    kinds: Sequence[str] = field(default_factory=lambda: tuple(KINDS))
    masters: int = 3
    logs: Path | None = None
    """Where the logs of a seed that failed are copied to."""

    @property
    def per_seed(self) -> int:
        return self.steps or PER_SEED

    def replay(self, seed: int, steps: int) -> str:
        """The command that does the same again, as far as the schedule goes."""
        words = [self.section, f"--seed {seed}", f"--steps {steps}"]
        chosen = self.section == "chaos" and set(self.kinds) != set(KINDS)
        words += [f"--faults {','.join(self.kinds)}"] if chosen else []
        words += [f"--masters {self.masters}"] if self.masters != 3 else []
        return f'make soak SOAK="{" ".join(words)}"'


def read_kinds(text: str) -> tuple[str, ...]:
    """`kill,freeze`; ValueError names what there is not."""
    kinds = tuple(each.strip() for each in text.split(",") if each.strip())
    if unknown := [each for each in kinds if each not in KINDS]:
        raise ValueError(f"there is no fault {unknown[0]}; there are {', '.join(KINDS)}")
    return kinds
