"""Start-up time: `protokube --help` and a cold `protokube complete`, compared with a bare interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

from measure import BARE, interleaved

MINIMAL = str(Path(__file__).resolve().parent.parent / "examples" / "minimal.yaml")
BUDGET = {"--help": 0.15, "complete": 0.4}


def main() -> bool:
    protokube = [sys.executable, "-m", "protokube"]
    commands = {"bare": BARE, "--help": [*protokube, "--help"], "complete": [*protokube, "complete", MINIMAL]}
    interleaved(commands, rounds=1)  # the first start compiles bytecode
    medians = interleaved(commands, rounds=15)
    print(f"start: python -c pass {medians['bare'] * 1000:.0f} ms, median of 15 interleaved rounds")
    fine = True
    for name, budget in BUDGET.items():
        ok = medians[name] <= budget
        fine &= ok
        ratio = medians[name] / medians["bare"]
        print(
            f"  {name:<9} {medians[name] * 1000:5.0f} ms = {ratio:4.1f} x bare; budget {budget * 1000:.0f} ms"
            f"{'' if ok else '  OVER'}"
        )
    return fine


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
