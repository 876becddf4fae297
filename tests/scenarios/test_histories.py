"""Five hundred random histories: whatever happens, nothing that must hold is broken, and in the end the cluster heals.

Half of them are in `test_more_histories`, so that two workers share them. `PROTOKUBE_HISTORIES=20000` has that many in
each of the two files.
"""

from __future__ import annotations

import os

import pytest

from clusters.scenario.histories import failure, make_history, run_histories, shortest
from clusters.scenario.player import Step

pytestmark = pytest.mark.usefixtures("unmeasured")

EACH = int(os.environ.get("PROTOKUBE_HISTORIES", "250"))

BOOT: list[Step] = [("boot", 0, 0), ("boot", 1, 0), ("boot", 2, 0)]
UP: list[Step] = [*BOOT, *[("all", 0, 1)] * 7]


@pytest.mark.parametrize("part", range(10))
def test_whatever_happens_nothing_is_lost_and_the_cluster_heals(part: int) -> None:
    run_histories(range(part * EACH // 10, (part + 1) * EACH // 10))


@pytest.mark.parametrize(
    "steps",
    [
        # a machine that is lost together with its disk: the new disk's epoch began below that of the name
        [*UP, ("kill", 1, 0), ("delete", 1, 0), ("replace", 0, 0)],
        # the tags of a disk are taken away while its etcd runs: it was linked again in the round that let it go
        [*UP, ("hide", 2, 0), ("all", 0, 1), ("all", 0, 1)],
        # a machine with a full disk of its own
        [*BOOT, ("dns lost", 32, 51), ("all", 1, 1), ("crash", 28, 54), ("full", 48, 50), ("all", 0, 0), ("all", 0, 0)],
        # a provider that knows a greater epoch than the disk
        [*UP, ("raise", 0, 0), ("all", 0, 1), ("all", 0, 1), ("all", 0, 1)],
        # declared dead, awake, elected, and without a zone: nobody made the new disk
        [("world", 8, 0), *BOOT, *[("all", 1, 1)] * 3, ("kill", 26, 28), ("sleep inside", 68, 11), ("delete", 9, 51)],
        # two disks for one member, without a zone: the name went to the one that was not in use
        [
            ("world", 8, 0), *BOOT, ("silence inside", 85, 38), ("all", 2, 1), ("all", 0, 1), ("hide", 46, 27),
            ("all", 47, 54), ("all", 95, 13), ("all", 85, 14), ("delete", 36, 33),
        ],
        # tags that come back leave a machine with two disks of one etcd cluster
        [("boot", 0, 0), ("round", 64, 28), ("hide", 63, 4), ("interleave", 62, 1)],
    ],
)  # fmt: skip
def test_histories_that_once_went_wrong_go_well(steps: list[Step]) -> None:
    assert failure(steps) == ""


def test_one_seed_makes_one_history() -> None:
    assert make_history(7) == make_history(7)
    assert make_history(7) != make_history(8)


def test_a_bad_history_is_told_in_its_shortest_form() -> None:
    bad: list[Step] = [*UP, ("write", 0, 0), ("no such step", 1, 2), ("write", 0, 0)]
    assert shortest(bad) == [("no such step", 1, 2)]
    assert "do_no_such_step" in failure(bad)
