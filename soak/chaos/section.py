"""`make soak SOAK=chaos`: seed after seed until the time is up, somebody interrupts, or for ever."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from soak.budget import Budget, Outcome, Section, say
from soak.chaos.campaign import Campaign
from soak.chaos.options import Options
from soak.chaos.tally import Tally

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def section(options: Options) -> Section:
    says = (
        f"faults drawn from {len(options.kinds)} kinds on {options.masters} masters, histories and invariants checked"
    )
    return Section("chaos", says, lambda budget: run(options, budget))


def run(options: Options, budget: Budget) -> Outcome:
    """One seed if a number of steps is asked for and no time; else seed after seed."""
    tally, outcome = Tally(), Outcome(0)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1, 100_000)
    say(f"chaos: the first seed is {seed}")
    with interrupted_once():
        try:
            while not budget.over:
                if broken := Campaign(seed, options, budget, tally).run():
                    outcome.found.append(broken)
                    say(f"chaos: BROKEN {broken}")
                seed += 1
                if options.steps is not None and budget.left is None:
                    break
        except KeyboardInterrupt:
            say("chaos: interrupted; everything was taken back")
    outcome.wanted = outcome.done = tally.steps
    outcome.measured = tally.lines()
    return outcome


@contextmanager
def interrupted_once() -> Iterator[None]:
    """The first signal ends the run; later ones must not end what it takes back and takes down."""

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
