"""The plan of pods to stop and to start, over all kinds of histories of a manifest folder."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.hosts import a_pod
from protokube.local.base.backoff import next_wait
from protokube.local.pods.containers import wants_restart
from protokube.local.pods.plan import PodPlan, Reading, choose, plan
from protokube.local.pods.pods import Pod, read_pod

steady = settings(derandomize=True, deadline=None)


def pod(name: str, edition: int = 1) -> Pod:
    return read_pod(json.dumps(a_pod(name, ["sleep", str(edition)])))


def good(file: str, found: Pod) -> Reading:
    return Reading(file=file, pod=found)


def bad(file: str, why: str = "not YAML") -> Reading:
    return Reading(file=file, problem=why)


def test_a_new_pod_is_started_and_one_whose_file_is_gone_is_stopped() -> None:
    assert plan({}, {"a.yaml": pod("a")}) == PodPlan((), (pod("a"),))
    assert plan({"default/a": pod("a").digest}, {}) == PodPlan((("default/a", "its manifest is gone"),), ())


def test_a_pod_that_runs_as_it_should_is_left_alone() -> None:
    assert plan({"default/a": pod("a").digest}, {"a.yaml": pod("a")}) == PodPlan((), ())


def test_a_changed_pod_is_stopped_and_only_started_when_it_is_gone() -> None:
    desired = {"a.yaml": pod("a", 2)}
    assert plan({"default/a": pod("a", 1).digest}, desired) == PodPlan((("default/a", "its manifest changed"),), ())
    assert plan({}, desired) == PodPlan((), (pod("a", 2),))


def test_a_broken_file_keeps_the_pod_it_had() -> None:
    desired = choose([bad("a.yaml")], {"a.yaml": pod("a")})
    assert desired.pods == {"a.yaml": pod("a")}
    assert desired.problems == {"a.yaml": "not YAML; default/a goes on as it was"}


def test_a_broken_file_that_never_was_whole_runs_nothing() -> None:
    desired = choose([bad("a.yaml")], {})
    assert desired.pods == {}
    assert desired.problems == {"a.yaml": "not YAML"}


def test_a_file_that_is_gone_is_forgotten() -> None:
    assert choose([], {"a.yaml": pod("a")}).pods == {}


def test_of_two_files_with_one_pod_the_one_that_had_it_keeps_it() -> None:
    readings = [good("0.yaml", pod("a", 2)), good("1.yaml", pod("a", 1))]
    fresh = choose(readings, {})
    assert fresh.pods == {"0.yaml": pod("a", 2)}
    assert fresh.problems == {"1.yaml": "default/a is in 0.yaml already"}
    held = choose(readings, {"1.yaml": pod("a", 1)})
    assert held.pods == {"1.yaml": pod("a", 1)}
    assert held.problems == {"0.yaml": "default/a is in 1.yaml already"}


def test_a_renamed_file_changes_nothing_for_its_pod() -> None:
    desired = choose([good("new.yaml", pod("a"))], {"old.yaml": pod("a")})
    assert plan({"default/a": pod("a").digest}, desired.pods) == PodPlan((), ())


FILES = st.sampled_from(["0.yaml", "1.yaml", "2.yaml"])
PODS = st.builds(pod, st.sampled_from(["a", "b"]), st.integers(1, 2))
FOLDERS = st.dictionaries(FILES, PODS | st.none(), max_size=3)


def readings_of(folder: Mapping[str, Pod | None]) -> list[Reading]:
    return [good(file, found) if found else bad(file) for file, found in folder.items()]


@steady
@given(FOLDERS, st.dictionaries(FILES, PODS, max_size=3))
def test_no_pod_is_wanted_twice_and_every_file_is_accounted_for(
    folder: dict[str, Pod | None], before: dict[str, Pod]
) -> None:
    desired = choose(readings_of(folder), before)
    keys = [found.key for found in desired.pods.values()]
    assert len(keys) == len(set(keys))
    assert set(desired.pods) | set(desired.problems) == set(folder)
    for file, found in folder.items():
        assert desired.pods.get(file, found) in (found, before.get(file))


@steady
@given(FOLDERS, st.permutations(range(3)))
def test_the_order_of_reading_does_not_matter(folder: dict[str, Pod | None], order: list[int]) -> None:
    readings = readings_of(folder)
    shuffled = [readings[place] for place in order if place < len(readings)]
    assert choose(shuffled, {}) == choose(readings, {})


@steady
@given(st.lists(st.tuples(FOLDERS, st.sets(st.sampled_from(["default/a", "default/b"])), st.booleans()), max_size=12))
def test_any_history_keeps_one_life_per_pod_and_ends_where_the_files_say(
    history: list[tuple[dict[str, Pod | None], set[str], bool]],
) -> None:
    """Each step: the folder as it is now, pods whose end comes through, and whether the runner looks before that."""
    running: dict[str, Pod] = {}
    stopping: set[str] = set()
    wanted: Mapping[str, Pod] = {}

    def follow() -> None:
        chosen = plan({key: each.digest for key, each in running.items()}, wanted)
        stopping.update(key for key, _ in chosen.stop)
        for each in chosen.start:
            assert each.key not in running, "two lives of one pod"
            running[each.key] = each

    def end(keys: set[str]) -> None:
        for key in keys & stopping:
            del running[key]
            stopping.remove(key)

    for folder, ended, look_first in history:
        if not look_first:
            end(ended)
        wanted = choose(readings_of(folder), wanted).pods
        follow()
        if look_first:
            end(ended)
            follow()
    while stopping:
        end(set(stopping))
        follow()
    assert {key: each.digest for key, each in running.items()} == {each.key: each.digest for each in wanted.values()}


@steady
@given(st.lists(st.floats(0, 100), min_size=1, max_size=30))
def test_the_wait_doubles_up_to_its_limit_and_starts_over_after_a_long_life(lives: list[float]) -> None:
    wait = 0.0
    for lived in lives:
        before, wait = wait, next_wait(wait, lived, first=0.2, most=30, reset=60)
        assert 0.2 <= wait <= 30
        if lived >= 60 or not before:
            assert wait == 0.2
        else:
            assert wait == min(2 * before, 30)


def test_a_program_that_never_lives_is_tried_less_and_less() -> None:
    wait, waits = 0.0, []
    for _ in range(10):
        wait = next_wait(wait, 0.01, first=0.2, most=10, reset=10)
        waits.append(wait)
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10, 10]


def test_the_policy_says_who_is_started_again() -> None:
    table = {
        (policy, code): wants_restart(policy, code)
        for policy in ("Always", "OnFailure", "Never")
        for code in (0, 1, -9)
    }
    assert [key for key, again in table.items() if again] == [
        ("Always", 0),
        ("Always", 1),
        ("Always", -9),
        ("OnFailure", 1),
        ("OnFailure", -9),
    ]
