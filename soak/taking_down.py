"""Kill all processes of a cluster at once, then run `down`: ten times, and nothing is left on the machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress

from clusters.machine_census import Census, machine
from clusters.real import RealCluster, until
from soak.budget import Budget, Outcome, Section, say

TIMES = 10
KINDS = ("named networks", "links", "loop devices", "mounts")
"""Compared for the whole machine. Processes are checked by pid instead: other programs start some all the time."""


def run(budget: Budget) -> Outcome:
    outcome = Outcome(TIMES)
    for number in range(1, TIMES + 1):
        if budget.over:
            break
        try:
            outcome.measured += [f"round {number}, not ours: {each}" for each in once()]
        except AssertionError as left:
            outcome.found.append(f"round {number}: {left}")
        outcome.done += 1
        say(f"down: round {number} of {TIMES}")
    return outcome


def once() -> list[str]:
    """One round; returns what is new on the machine but does not belong to the cluster."""
    before = machine()
    with RealCluster() as cluster:
        cluster.up()
        census = Census.of(cluster.paths)
        for pid, _ in census.processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ran = cluster.run("down", "--cluster", cluster.name)
        assert ran.code == 0, ran.err
        census.nothing_is_left()
    ours = (str(cluster.state), cluster.paths.switch, "links: ")
    left = new_since(before)
    until(
        lambda: not [x for x in new_since(before) if any(name in x for name in ours)], f"all is as before: {left}", 10
    )
    return new_since(before)


def new_since(before: Mapping[str, frozenset[str]]) -> list[str]:
    now = machine()
    return [f"{kind}: {each}" for kind in KINDS for each in sorted(now[kind] - before[kind])]


DOWN = Section("down", f"kill -9 of every process of a cluster, then `down`, {TIMES} times", run)
