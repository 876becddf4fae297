"""Everything `make soak` runs: what must always hold, for hours instead of seconds.

    python soak/run.py                     all of it
    python soak/run.py wiped drills        these sections
    python soak/run.py --minutes 30        as much as fits, and it says what was cut short

Ends with 1 if a promise was broken, and with 0 otherwise.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from protokube.errors import ProtokubeError  # noqa: E402
from soak.budget import Budget, Outcome, Section, say  # noqa: E402
from soak.drilling import DRILLS_SECTION  # noqa: E402
from soak.idling import RSS  # noqa: E402
from soak.suites import COMPARISONS, FAULTS, HISTORIES, RENEWALS, WIPED  # noqa: E402
from soak.taking_down import DOWN  # noqa: E402

SECTIONS = {each.name: each for each in (WIPED, HISTORIES, COMPARISONS, DRILLS_SECTION, FAULTS, RENEWALS, RSS, DOWN)}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="soak/run.py", description="What must always hold, for hours.")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--minutes", type=float, help="stop after this long, and say what was cut short")
    told = parser.parse_args(arguments)
    if unknown := [name for name in told.sections if name not in SECTIONS]:
        parser.error(f"there is no section {unknown[0]}; there are {', '.join(SECTIONS)}")
    if os.geteuid() != 0:
        parser.error("the local cloud needs root")
    chosen = [SECTIONS[name] for name in told.sections or SECTIONS]
    budget = Budget(told.minutes)
    for each in chosen:
        say(f"will run {each.name}: {each.says}")
    outcomes = {each.name: soak(each, budget) for each in chosen}
    say("what came of it:")
    for name, outcome in outcomes.items():
        say(f"  {name}: {outcome}")
        for line in outcome.measured:
            say(f"      {line}")
    broken = [f"{name}: {found}" for name, outcome in outcomes.items() for found in outcome.found]
    for each_found in broken:
        say(f"BROKEN {each_found}")
    return 1 if broken else 0


def soak(section: Section, budget: Budget) -> Outcome:
    began = time.monotonic()
    say(f"{section.name}: begins")
    try:
        outcome = section.run(budget)
    except (AssertionError, ProtokubeError) as broken:  # a cluster that does not come up, or does not heal
        outcome = Outcome(1, done=1, found=[str(broken)])
    say(f"{section.name}: {outcome}, after {(time.monotonic() - began) / 60:.1f} minutes")
    return outcome


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
