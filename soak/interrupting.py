"""Kill the first `up` at random moments, spread over its steps: the next `up` or `down` works, every time."""

from __future__ import annotations

import random

from clusters.interrupted import KILLS, STEPS, goes_away, goes_on, interrupted_up
from clusters.real import RealCluster
from soak.budget import Budget, Outcome, Section, say

ROUNDS = 3
"""Each of them kills once after every step."""
LATEST = 0.6
"""Seconds after a step: longer than most of them take."""
OTHER = ("--masters", "1")


def run(budget: Budget) -> Outcome:
    outcome = Outcome(ROUNDS * len(STEPS))
    for number in range(outcome.wanted):
        if budget.over:
            break
        dice = random.Random(number)
        step, kill = STEPS[number % len(STEPS)], dice.choice(sorted(KILLS))
        delay, then = round(dice.uniform(0, LATEST), 3), dice.choice(("up", "up with other options", "down"))
        moment = f"{delay} s after {step.strip()!r}, {kill} killed, then {then}"
        try:
            once(step, delay, kill, then)
        except AssertionError as broken:
            outcome.found.append(f"{moment}: {broken}")
        outcome.done += 1
        say(f"interrupted: {moment}: {outcome.done} of {outcome.wanted}")
    return outcome


def once(step: str, delay: float, kill: str, then: str) -> None:
    with RealCluster() as cluster:
        interrupted_up(cluster, step, delay, KILLS[kill])
        if then == "down":
            goes_away(cluster)
        elif then == "up":
            goes_on(cluster)
        else:
            goes_on_or_is_kept(cluster)


def goes_on_or_is_kept(cluster: RealCluster) -> None:
    """With other options: a new cluster; or, once there may be data, a refusal, and the same options go on."""
    said = cluster.run("up", "--cluster", cluster.name, "--kubernetes", "none", *OTHER)
    if said.code == 4:
        assert "exists already, with a different configuration" in said.err or "may have data" in said.err, said.err
        goes_on(cluster)
    else:
        assert said.code == 0, said.err
        assert len(cluster.until_ready()["members"]) == 1


INTERRUPTED = Section("interrupted", f"kill the first `up` at {ROUNDS * len(STEPS)} random moments", run)
