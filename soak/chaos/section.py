"""`make soak SOAK=chaos`: seed after seed until the time is up or a signal arrives."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

from soak.budget import Budget, Outcome, Section, say
from soak.chaos.campaign import Campaign
from soak.chaos.catalog import OF_THE_MACHINE
from soak.chaos.options import PER_SEED, Options
from soak.chaos.tally import Tally

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def chaos(options: Options) -> Section:
    kinds = f"faults drawn from {len(options.kinds)} kinds on {options.masters} masters"
    return Section("chaos", f"{kinds}, histories and invariants checked", lambda budget: run(options, budget))


def clock(options: Options) -> Section:
    """One seed unless a time limit is given: a machine should not have a wrong clock indefinitely."""
    chosen = replace(options, section="clock", kinds=tuple(OF_THE_MACHINE), steps=options.steps or PER_SEED)
    description = "the clock of this machine jumps and jumps back; everything on the machine notices"
    return Section("clock", description, lambda budget: run(chosen, budget))


def run(options: Options, budget: Budget) -> Outcome:
    """One seed if the number of steps is given without a time limit; else seed after seed."""
    tally, outcome = Tally(), Outcome(0)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1, 100_000)
    say(f"{options.section}: the first seed is {seed}")
    with interrupted_once():
        while not budget.over:
            campaign = Campaign(seed, options, budget, tally)
            if broken := campaign.run():
                outcome.found.append(shortened(broken))
                say(f"{options.section}: BROKEN {broken}")
            if campaign.interrupted:
                say(f"{options.section}: interrupted; everything was taken back")
            if campaign.interrupted or (options.steps is not None and budget.left is None):
                break
            seed += 1
    outcome.wanted = outcome.done = tally.steps
    outcome.measured = tally.lines()
    return outcome


def shortened(report: str) -> str:
    """What is broken and how to replay it; the steps were printed when it was found."""
    first, *_, last = report.splitlines()
    return f"{first}; {last}"


@contextmanager
def interrupted_once() -> Iterator[None]:
    """The first signal ends the run; later ones are ignored, so that they do not interrupt the clean-up."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {each: signal.signal(each, end) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
