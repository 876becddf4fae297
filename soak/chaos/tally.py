"""The statistics of a run: seeds, operations, faults by kind, and how long each kind took to heal."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from statistics import median


@dataclass
class Tally:
    """Filled step by step."""

    seeds: list[int] = field(default_factory=list)
    steps: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    """By result: ok, fail, unknown."""
    faults: Counter[str] = field(default_factory=Counter)
    healing: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Seconds by kind, or by both kinds of a step with two faults."""
    refused: Counter[str] = field(default_factory=Counter)
    """By kind: how often a person was needed, as allowed."""
    undecided: int = 0
    """Histories whose check exceeded its limit."""
    looks: int = 0

    def lines(self) -> list[str]:
        seeds = ", ".join(map(str, self.seeds)) or "none"
        done = ", ".join(f"{self.operations[each]} {each}" for each in ("ok", "fail", "unknown"))
        found = [
            f"seeds: {seeds}; {self.steps} steps; {self.looks} looks at the invariants",
            f"operations: {done}; histories not decided: {self.undecided}",
            "faults: " + (", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.items())) or "none"),
        ]
        for kind, took in sorted(self.healing.items()):
            person = f", a person needed {self.refused[kind]} times" if self.refused[kind] else ""
            found.append(f"healing after {kind}: median {median(took):.1f} s, worst {max(took):.1f} s{person}")
        return found
