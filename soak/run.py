"""Everything `make soak` runs: checks of the guarantees, for hours instead of seconds.

    python soak/run.py                     all of it
    python soak/run.py wiped drills        these sections
    python soak/run.py --minutes 30        as much as fits; reports what was cut short
    python soak/run.py chaos               random faults until interrupted; not part of "all of it"
    python soak/run.py chaos --seed 17 --steps 12      the same faults again
    python soak/run.py clock               the clock of this machine jumps; only if named

Exits with 1 if a promise was broken, and with 0 otherwise.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ["PROTOKUBE_ISOLATED"] = "1"  # nothing here sends anything outside
os.environ["PROTOKUBE_KUBECONFIG"] = "0"  # nor changes the kubeconfig of whoever runs it
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from protokube.errors import ProtokubeError  # noqa: E402
from soak.budget import Budget, Outcome, Section, say  # noqa: E402
from soak.chaos.catalog import KINDS  # noqa: E402
from soak.chaos.options import PER_SEED, Options, read_kinds  # noqa: E402
from soak.chaos.section import chaos, clock  # noqa: E402
from soak.conformance.section import CONFORMANCE  # noqa: E402
from soak.drilling import DRILLS_SECTION  # noqa: E402
from soak.idling import RSS  # noqa: E402
from soak.interrupting import INTERRUPTED  # noqa: E402
from soak.suites import COMPARISONS, FAULTS, HISTORIES, RENEWALS, WIPED  # noqa: E402
from soak.taking_down import DOWN  # noqa: E402
from soak.versions import VERSIONS_SECTION  # noqa: E402

ALL = (
    WIPED,
    HISTORIES,
    COMPARISONS,
    DRILLS_SECTION,
    FAULTS,
    RENEWALS,
    RSS,
    DOWN,
    INTERRUPTED,
    VERSIONS_SECTION,
    CONFORMANCE,
)
SECTIONS = {each.name: each for each in ALL}
BY_NAME = ("chaos", "clock")
"""Sections that run only if they are named: they do not end by themselves, or affect the whole machine."""


def read_arguments(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[list[Section], float | None]:
    names = ", ".join([*SECTIONS, *BY_NAME])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=names)
    parser.add_argument("--minutes", type=float, help="stop after this time, and report what was cut short")
    more = parser.add_argument_group("chaos and clock")
    more.add_argument("--seed", type=int, help="the first seed (random)")
    more.add_argument("--steps", type=int, help=f"steps with each seed ({PER_SEED}); without --minutes, one seed only")
    more.add_argument("--faults", metavar="KIND,...", default=",".join(KINDS), help=", ".join(KINDS))
    more.add_argument("--masters", type=int, default=3, help="number of masters (3)")
    more.add_argument("--logs", type=Path, metavar="FOLDER", help="copy the logs of clusters that failed into it")
    parsed = parser.parse_args(arguments)
    if unknown := [name for name in parsed.sections if name not in (*SECTIONS, *BY_NAME)]:
        parser.error(f"there is no section {unknown[0]}; there are {names}")
    try:
        kinds = read_kinds(parsed.faults)
    except ValueError as why:
        parser.error(str(why))
    options = Options(seed=parsed.seed, steps=parsed.steps, kinds=kinds, masters=parsed.masters, logs=parsed.logs)
    known = {**SECTIONS, "chaos": chaos(options), "clock": clock(options)}
    return [known[name] for name in parsed.sections or SECTIONS], parsed.minutes


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="soak/run.py", description="Check the guarantees for hours.")
    chosen, minutes = read_arguments(parser, arguments)
    if os.geteuid() != 0:
        parser.error("the local cloud needs root")
    budget = Budget(minutes)
    for each in chosen:
        say(f"will run {each.name}: {each.description}")
    outcomes = {each.name: soak(each, budget) for each in chosen}
    say("results:")
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
