"""Start-up time: `protokube --help`, a cold `protokube complete` and a host's init, as ratios to a bare interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

from measure import BARE, interleaved

ROOT = Path(__file__).resolve().parent.parent
MINIMAL = str(ROOT / "examples" / "minimal.yaml")
INIT = [sys.executable, "-I", "-S", "-c", "import sys; sys.path[:0] = [sys.argv[1]]; import protokube.local.host.init"]
BUDGET = {"--help": 0.15, "complete": 0.4, "host init": 0.1}


def main() -> bool:
    protokube = [sys.executable, "-m", "protokube"]
    commands = {
        "bare": BARE, "--help": [*protokube, "--help"], "complete": [*protokube, "complete", MINIMAL],
        "host init": [*INIT, str(ROOT / "src")],
    }  # fmt: skip
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
