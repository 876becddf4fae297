"""Run each drill twenty times on one cluster through `protokube drill`; every verdict must be good."""

from __future__ import annotations

import json
from itertools import product
from statistics import median

from clusters.real import RealCluster
from protokube.cli.drill import DRILLS
from soak.budget import Budget, Outcome, Section, say

TIMES = 20


def run(budget: Budget) -> Outcome:
    outcome = Outcome(TIMES * len(DRILLS))
    seconds: dict[str, list[float]] = {name: [] for name in DRILLS}
    with RealCluster() as cluster:
        cluster.up()
        for number, name in product(range(1, TIMES + 1), DRILLS):
            if budget.over:
                break
            broken = drill(cluster, name, seconds[name])
            outcome.done += 1
            if broken:
                outcome.found.append(f"{name}, round {number}: {broken}")
            say(f"drills: {name}, round {number} of {TIMES}{': BROKEN' if broken else ''}")
    outcome.measured = [
        f"{name}: healed after {min(took):.1f} s at best, mostly {median(took):.1f} s, {max(took):.1f} s at worst"
        for name, took in seconds.items()
        if took
    ]
    return outcome


def drill(cluster: RealCluster, name: str, took: list[float]) -> str:
    """Run one drill; return why its verdict is bad, or "" if it is good."""
    cluster.until_ready(180)
    ran = cluster.run("drill", name, "--cluster", cluster.name, "--timeout", "180s", "--output", "json", seconds=400)
    if not ran.out:
        return f"exit code {ran.code}: {ran.err[-1000:]}"
    verdict = json.loads(ran.out)
    if ran.code != 0:
        problems = [f"broken: {each}" for each in verdict["broken"]]
        problems += [f"waited for {each}" for each in verdict["waitingFor"]]
        steps = [f"{step['seconds']:.1f} s {step['text']}" for step in verdict["steps"]]
        return f"exit code {ran.code}: {'; '.join(problems)} [{'; '.join(steps)}]"
    took.append(max((step["seconds"] for step in verdict["steps"]), default=0.0))
    return ""


DRILLS_SECTION = Section("drills", f"each of {', '.join(DRILLS)}, {TIMES} times, while somebody writes", run)
