"""One run of the suite: choose tests, bring a cluster up, load images, run the tests, and rerun failed ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from protokube.binaries.kubernetes import find
from protokube.binaries.product import Release
from protokube.cli.shared.progress import Progress
from soak.budget import Budget, say
from soak.conformance.cluster import load_images, opened, target
from soak.conformance.drills import Drills
from soak.conformance.ginkgo import Suite, Target
from soak.conformance.specs import Spec, Verdict, chosen, is_serial, judge, lost_a_request
from soak.conformance.suite import obtain_suite

REPORTS = Path(__file__).resolve().parent.parent.parent / "build" / "conformance"
"""The default folder for reports and logs."""
LONGEST = 6 * 3600.0
"""Seconds for a run without a time limit."""
EVERY = 30.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    focus: str
    reports: Path
    """The folder for reports and logs."""
    skip: str = ""
    serial: bool = False
    """Whether to also run serial tests, which need the cluster for themselves."""
    drill: str = ""
    """A drill that is repeated during the run."""
    cluster: str = ""
    """An existing local cluster; empty for a new one."""
    kubernetes: str | None = None
    masters: int = 3
    processes: int = 4
    """Tests at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    verdict: Verdict
    drills: Sequence[str]
    """The result of each drill, for the report."""
    broken: Sequence[str]
    """Promises that drills found broken."""


def run(options: Options, budget: Budget) -> Result:
    kubernetes = find(options.kubernetes)
    assert kubernetes, "no Kubernetes on this machine: `scripts/kubernetes` has it made"
    suite = open_suite(kubernetes, options)
    names, left = chosen(suite.specs(), options.focus, options.skip, serial=options.serial)
    assert names, f"no test is in focus: {options.focus}"
    say(f"Kubernetes {kubernetes.version}: {len(names)} tests to run, {len(left)} left out")
    with opened(options.cluster, options.masters) as cluster:
        unavailable = load_images(cluster, suite)
        where = target(cluster, kubernetes, loses_nodes=bool(options.drill))
        with Drills(cluster, options.drill) as drills:
            first = _first(suite, names, where, budget)
        second = _second(suite, names, first, where, budget, under_fire=bool(options.drill))
    verdict = judge(names, first, second, unavailable=unavailable, left=left, under_fire=bool(options.drill))
    return Result(verdict=verdict, drills=drills.verdicts, broken=drills.broken)


def open_suite(kubernetes: Release, options: Options) -> Suite:
    release = obtain_suite(kubernetes.version, Progress())
    options.reports.mkdir(parents=True, exist_ok=True)
    return Suite(release=release, folder=options.reports, processes=options.processes)


def _first(suite: Suite, names: Sequence[str], where: Target, budget: Budget) -> list[Spec]:
    """Run the parallel tests, then the serial ones."""
    together, alone = [name for name in names if not is_serial(name)], [name for name in names if is_serial(name)]
    found = _step(suite, together, where, "parallel", suite.processes, budget)
    return found + _step(suite, alone, where, "serial", 1, budget)


def _second(
    suite: Suite, names: Sequence[str], first: Sequence[Spec], where: Target, budget: Budget, *, under_fire: bool
) -> list[Spec]:
    """Rerun failed tests one at a time. If drills ran, only those that failed by a lost request, without drills now."""
    broken = [spec for spec in first if spec.is_run and not spec.is_passed and spec.name in names]
    again = [spec.name for spec in broken if not under_fire or lost_a_request(spec)]
    return _step(suite, again, where, "again", 1, budget)


def _step(suite: Suite, names: Sequence[str], where: Target, label: str, processes: int, budget: Budget) -> list[Spec]:
    if not names or budget.over:
        return []
    say(f"{label}: {len(names)} tests, {processes} at a time")
    shown = time.monotonic()

    def show(ended: int) -> None:
        nonlocal shown
        if time.monotonic() - shown > EVERY:
            shown = time.monotonic()
            say(f"{label}: {ended} of {len(names)} have ended")

    seconds = LONGEST if budget.left is None else budget.left
    return suite.run(names, where, label, processes=processes, seconds=seconds, on_progress=show)
