"""Which faults come when depends on the seed and on nothing else."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soak.chaos.catalog import KINDS, SURVIVED
from soak.chaos.fault import Fault
from soak.chaos.options import Options, read_kinds
from soak.chaos.schedule import Step, steps
from soak.chaos.tally import Tally

MEMBERS = ("a", "b", "c")
seeds = st.integers(0, 10**6)


def some(seed: int, count: int = 12) -> list[Step]:
    return list(islice(steps(seed, KINDS, MEMBERS), count))


@given(seeds)
def test_the_same_seed_gives_the_same_steps(seed: int) -> None:
    assert [str(each) for each in some(seed)] == [str(each) for each in some(seed)]


def test_another_seed_gives_other_steps() -> None:
    assert len({str(some(seed)[0]) for seed in range(50)}) > 20


@given(seeds)
def test_every_kind_comes_once_before_any_comes_twice(seed: int) -> None:
    first = [each.faults[0].kind for each in some(seed, len(KINDS))]

    assert sorted(first) == sorted(KINDS)


@given(seeds)
def test_a_fault_that_has_to_be_alone_is_alone(seed: int) -> None:
    for step in some(seed):
        assert len(step.faults) == 1 or not any(each.alone for each in step.faults)


@given(seeds)
def test_two_faults_at_once_are_of_two_kinds_and_aim_at_two_members(seed: int) -> None:
    for step in some(seed):
        if len(step.faults) == 2:
            one, other = step.faults
            assert one.kind != other.kind
            assert not one.member or one.member != other.member


@given(seeds, st.sets(st.sampled_from(sorted(KINDS)), min_size=1))
def test_only_the_kinds_asked_for_come(seed: int, kinds: set[str]) -> None:
    chosen = {kind: KINDS[kind] for kind in kinds}

    for step in islice(steps(seed, chosen, MEMBERS), 20):
        assert {each.kind for each in step.faults} <= kinds


@given(seeds)
def test_a_cluster_of_one_master_has_a_schedule_too(seed: int) -> None:
    assert len(list(islice(steps(seed, KINDS, ("a",)), 30))) == 30


def test_what_every_build_survives_is_in_the_catalog() -> None:
    assert set(SURVIVED) <= set(KINDS)


def test_a_fault_that_may_be_refused_knows_what_the_person_does() -> None:
    for kind in KINDS.values():
        assert not kind.causes or kind.mend is not Fault.mend, kind.kind


def test_the_replay_names_the_seed_the_steps_and_whatever_is_not_the_default() -> None:
    assert Options().replay(17, 12) == 'make soak SOAK="chaos --seed 17 --steps 12"'
    chosen = Options(kinds=("kill", "freeze"), masters=5)
    assert chosen.replay(17, 3) == 'make soak SOAK="chaos --seed 17 --steps 3 --faults kill,freeze --masters 5"'


def test_kinds_are_read_from_a_list() -> None:
    assert read_kinds("kill, freeze") == ("kill", "freeze")


def test_a_kind_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match="there is no fault kil; there are kill, "):
        read_kinds("freeze,kil")


def test_the_summary_names_seeds_operations_faults_and_healing_times() -> None:
    tally = Tally(seeds=[17, 18], steps=3)
    tally.operations.update(ok=100, fail=2, unknown=1)
    tally.faults.update(["kill", "kill", "clone"])
    tally.healing["kill"] += [1.0, 4.0]
    tally.healing["clone"] += [9.0]
    tally.refused["clone"] += 1

    assert tally.lines() == [
        "seeds: 17, 18; 3 steps; 0 looks at the invariants",
        "operations: 100 ok, 2 fail, 1 unknown; histories not decided: 0",
        "faults: clone 1, kill 2",
        "healing after clone: median 9.0 s, worst 9.0 s, a person needed 1 times",
        "healing after kill: median 2.5 s, worst 4.0 s",
    ]
