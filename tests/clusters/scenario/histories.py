"""Random histories of a cluster. Each must keep all invariants, and the cluster must heal.

A history is a list of plain steps, so that a bad one can be shortened by leaving steps out, printed, and kept as a
test: `replay([("boot", 0, 0), ("crash", 1, 14), ...])`. The numbers in a step choose among what there is at that time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from clusters.scenario.checks import Broken, Watch
from clusters.scenario.cluster import Stage
from clusters.scenario.host import tmpfs
from clusters.scenario.player import Player, Step

WEIGHTS = {
    "round": 25, "all": 20, "boot": 5, "kill": 4, "declare": 6, "replace": 8, "freeze": 4, "thaw": 4, "reboot": 4,
    "crash": 14, "interleave": 10, "die inside": 3, "lose inside": 4, "sleep inside": 10, "cloud": 3, "cloud lost": 4,
    "dns": 3, "dns lost": 3, "store": 2, "store lost": 3, "etcd lost": 3, "repair": 8, "delete": 5, "wipe": 2,
    "strip": 4, "jobs": 4, "full": 2, "write": 8, "forget": 2, "hide": 3, "show": 3, "disaster": 1,
    "silence inside": 6, "raise": 2, "copy": 6, "put back": 6, "clone": 1, "untag": 3, "swap": 2, "lie": 6, "linger": 4,
    "restart": 8, "break": 8, "wear": 4, "remove": 8, "slow": 5,
}  # fmt: skip
REJOIN_AFTER = "20s"
"""A member that was removed by hand; five minutes would be most of the rounds of a history."""
BEGINNINGS = (
    (), (), (), (), ("cloud lost",), ("dns lost",), ("store lost",), ("jobs",), ("cloud",), ("boot", "boot"),
    ("silence inside",),
)  # fmt: skip


def make_history(seed: int) -> list[Step]:
    """Most begin with three masters that have come up; some within bring-up, some with trouble from the start."""
    draw = random.Random(seed)
    steps: list[Step] = [("world", draw.randrange(10), 0), *(("boot", number, 0) for number in range(3))]
    steps += [(name, draw.randrange(100), draw.randrange(60)) for name in draw.choice(BEGINNINGS)]
    steps += [("all", draw.randrange(3), 1) for _ in range(draw.choice((0, 2, 4, 5, 6, 6, 6)))]
    names, weights = list(WEIGHTS), list(WEIGHTS.values())
    for name in draw.choices(names, weights, k=draw.randint(4, 18)):
        steps.append((name, draw.randrange(100), draw.randrange(60)))
    return steps


def replay(steps: Sequence[Step]) -> None:
    """Raises Broken, or whatever else goes wrong."""
    kind = next((first for name, first, _ in steps if name == "world"), 0)
    with tmpfs() as folder:
        clusters = "main events" if kind == 9 else "main"
        stage = Stage(folder, hosts_mode=kind == 8, clusters=clusters, rejoin_after=REJOIN_AFTER)
        player = Player(stage, Watch(stage))
        for step in steps:
            player.play(step)
        player.heal()


def failure(steps: Sequence[Step]) -> str:
    """What goes wrong with a history; nothing if it is in order."""
    try:
        replay(steps)
    except Broken as broken:
        return str(broken)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
        return f"{type(error).__name__}: {error}"
    return ""


def shortest(steps: Sequence[Step], tries: int = 400) -> list[Step]:
    """The same failure with as few steps as can be found: leave out halves, then quarters, then single ones."""
    kept, size = list(steps), max(1, len(steps) // 2)
    while size and tries > 0:
        at = 0
        while at < len(kept) and tries > 0:
            without = kept[:at] + kept[at + size :]
            tries -= 1
            if failure(without):
                kept = without
            else:
                at += size
        size //= 2
    return kept


def run_histories(seeds: Sequence[int]) -> None:
    """Replay one history for each seed; the first that fails is reported in its shortest form found."""
    for seed in seeds:
        steps = make_history(seed)
        if why := failure(steps):
            short = shortest(steps)
            raise AssertionError(f"history {seed}: {why}\nshortened: {failure(short)}\nreplay({short!r})")
