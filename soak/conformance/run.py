"""The official conformance suite of Kubernetes on a local cluster: `make conformance`.

    python -m soak.conformance.run                                   all tests of the suite that run side by side
    python -m soak.conformance.run --part api                        those of one part only
    python -m soak.conformance.run --focus 'sig-apps.*Deployment'    by a regular expression of one's own
    python -m soak.conformance.run --drill kill-master               masters die meanwhile

Ends with 0 if nothing failed, with 1 if a test failed or a drill found a promise broken.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers_cluster import RealCluster  # noqa: E402
from protokube.cli.drill import DRILLS  # noqa: E402
from protokube.cli.progress import Progress  # noqa: E402
from protokube.errors import ProtokubeError  # noqa: E402
from protokube.programs.kubernetes import find  # noqa: E402
from protokube.programs.product import Release  # noqa: E402
from soak.budget import Budget, say  # noqa: E402
from soak.conformance.cluster import load_images, opened, target  # noqa: E402
from soak.conformance.drills import Drills  # noqa: E402
from soak.conformance.ginkgo import Suite, Target  # noqa: E402
from soak.conformance.parts import PARTS, WHOLE  # noqa: E402
from soak.conformance.render import as_data, render  # noqa: E402
from soak.conformance.specs import Spec, Verdict, chosen, is_serial, judge, lost_a_request  # noqa: E402
from soak.conformance.suite import obtain_suite  # noqa: E402

REPORTS = ROOT / "build" / "conformance"
LONGEST = 6 * 3600.0
"""Seconds for a run that nobody limits."""
EVERY = 30.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    focus: str
    skip: str = ""
    serial: bool = False
    drill: str = ""
    cluster: str = ""
    kubernetes: str | None = None
    masters: int = 3
    processes: int = 4
    reports: Path = REPORTS


def read_arguments(arguments: list[str]) -> tuple[Options, float | None]:
    parser = argparse.ArgumentParser(prog="make conformance", description="The conformance suite of Kubernetes.")
    parser.add_argument("--part", choices=sorted(PARTS), help="a part of the suite that has a name")
    parser.add_argument("--focus", metavar="REGEX", help=f"which tests, by their names ({WHOLE})")
    parser.add_argument("--skip", metavar="REGEX", default="", help="which of those not")
    parser.add_argument("--serial", action="store_true", help="also those that need the cluster for themselves")
    parser.add_argument("--drill", choices=("", *DRILLS), default="", help="repeat this drill meanwhile")
    parser.add_argument("--cluster", metavar="NAME", default="", help="a local cluster that is there (one of its own)")
    parser.add_argument("--kubernetes", metavar="VERSION", help="which one (the newest on this machine)")
    parser.add_argument("--masters", type=int, default=3, help="of its own cluster (3)")
    parser.add_argument("--processes", type=int, default=4, help="tests at a time (4)")
    parser.add_argument("--reports", type=Path, default=REPORTS, help="where everything that was written is kept")
    parser.add_argument("--minutes", type=float, help="stop after this long")
    asked = parser.parse_args(arguments)
    if asked.part and asked.focus:
        parser.error("--part and --focus both say which tests: name one of them")
    if os.geteuid() != 0:
        parser.error("the local cloud needs root")
    words = vars(asked)
    part, minutes, focus = words.pop("part"), words.pop("minutes"), words.pop("focus")
    return Options(focus=PARTS[part] if part else focus or WHOLE, **words), minutes


def run(options: Options, budget: Budget) -> tuple[Verdict, Drills]:
    kubernetes = find(options.kubernetes)
    assert kubernetes, "no Kubernetes on this machine: `scripts/kubernetes` has it made"
    release = obtain_suite(kubernetes.version, Progress())
    options.reports.mkdir(parents=True, exist_ok=True)
    suite = Suite(release=release, folder=options.reports, processes=options.processes)
    names, left = chosen(suite.specs(), options.focus, options.skip, serial=options.serial)
    say(f"Kubernetes {kubernetes.version}: {len(names)} tests to run, {len(left)} left out")
    with opened(options.cluster, options.masters) as cluster:
        return carry_out(options, budget, suite, cluster, kubernetes, names, left)


def carry_out(
    options: Options, budget: Budget, suite: Suite, cluster: RealCluster, kubernetes: Release, names: list[str],
    left: dict[str, str],
) -> tuple[Verdict, Drills]:  # fmt: skip
    """Those that may run side by side, then the serial ones; what failed runs once more, alone."""
    unavailable = load_images(cluster, suite)
    where = target(cluster, kubernetes)
    both = [
        ("parallel", [name for name in names if not is_serial(name)], options.processes),
        ("serial", [name for name in names if is_serial(name)], 1),
    ]
    first: list[Spec] = []
    second: list[Spec] = []
    with Drills(cluster, options.drill) as drills:
        for label, some, processes in both:
            if some:
                first += step(suite, some, where, label, processes, budget)
        broken = [spec for spec in first if spec.is_run and not spec.is_passed and spec.name in names]
        again = [spec.name for spec in broken if not options.drill or lost_a_request(spec)]
        if again and not budget.over:
            second = step(suite, again, where, "again", 1, budget)
    verdict = judge(
        names, first, second, unavailable=unavailable, left=left, under_fire=bool(options.drill)
    )  # fmt: skip
    return verdict, drills


def step(suite: Suite, names: list[str], where: Target, label: str, processes: int, budget: Budget) -> list[Spec]:
    say(f"{label}: {len(names)} tests, {processes} at a time")
    told = time.monotonic()

    def progress(ended: int) -> None:
        nonlocal told
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            say(f"{label}: {ended} of {len(names)}")

    seconds = LONGEST if budget.left is None else budget.left
    return suite.run(names, where, label, processes=processes, seconds=seconds, told=progress)


def main(arguments: list[str]) -> int:
    options, minutes = read_arguments(arguments)
    try:
        verdict, drills = run(options, Budget(minutes))
    except (AssertionError, ProtokubeError) as why:
        say(f"error: {why}")
        return 1
    (options.reports / "verdict.json").write_text(json.dumps(as_data(verdict, drills.verdicts), indent=2))
    sys.stdout.write(f"\n{render(verdict, drills.verdicts)}\n")
    for each in drills.broken:
        say(f"BROKEN {each}")
    return 1 if verdict.failed or drills.broken else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
