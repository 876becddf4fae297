"""One run of the suite: choose tests, bring a cluster up, load images, run, and run once more what failed."""

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
"""Where everything that is written is kept, unless somebody says otherwise."""
LONGEST = 6 * 3600.0
"""Seconds for a run that nobody limits."""
EVERY = 30.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    focus: str
    reports: Path
    """Where everything that is written is kept."""
    skip: str = ""
    serial: bool = False
    """Whether tests that need the cluster for themselves run, too."""
    drill: str = ""
    """A drill that is repeated meanwhile."""
    cluster: str = ""
    """A local cluster that is there; else one of its own."""
    kubernetes: str | None = None
    masters: int = 3
    processes: int = 4
    """Tests at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    verdict: Verdict
    drills: Sequence[str]
    """What each drill said."""
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
    """Those that may run side by side, then those that may not."""
    together, alone = [name for name in names if not is_serial(name)], [name for name in names if is_serial(name)]
    found = _step(suite, together, where, "parallel", suite.processes, budget)
    return found + _step(suite, alone, where, "serial", 1, budget)


def _second(
    suite: Suite, names: Sequence[str], first: Sequence[Spec], where: Target, budget: Budget, *, under_fire: bool
) -> list[Spec]:
    """What failed, once more and alone; of what failed under fire, only what lost a request, and after the fire."""
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
    return suite.run(names, where, label, processes=processes, seconds=seconds, told=show)
