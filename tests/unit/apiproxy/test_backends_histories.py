"""Which API server is used: whatever happens, in whichever order, under a clock that the test moves."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from builders.examples import examples
from protokube.apiproxy.backends import ENOUGH, EVERY, Backends

ADDRESSES = [f"10.0.0.{number}" for number in range(1, 6)]
SOME = st.sets(st.sampled_from(ADDRESSES))


class Histories(RuleBasedStateMachine):
    """Keeps its own log of resolutions and checks, and compares the decisions with it."""

    def __init__(self) -> None:
        super().__init__()
        self.state = Backends(identity="node-1")
        self.now = 0.0
        self.results: dict[str, list[bool]] = {}
        self.named: set[str] = set()
        self.busy: set[str] = set()

    @rule(found=SOME)
    def the_name_is_resolved(self, found: set[str]) -> None:
        self.state = self.state.resolved(found, self.now, self.busy)
        self.named = found or self.named
        for gone in self.results.keys() - self.state.known.keys():
            del self.results[gone]

    @rule(address=st.sampled_from(ADDRESSES), passed=st.booleans(), times=st.integers(1, ENOUGH))
    def checks_come_back(self, address: str, passed: bool, times: int) -> None:
        for _ in range(times):
            self.state = self.state.checked(address, "" if passed else "no answer", self.now)
            if address in self.state.known:
                self.results.setdefault(address, []).append(passed)
        self.busy -= set(self.state.cut())

    @rule()
    def a_client_connects(self) -> None:
        for address in self.state.order()[:1]:
            self.state = self.state.trying(address).connected(address)
            self.busy.add(address)
            self.busy -= set(self.state.cut())

    @rule(address=st.sampled_from(ADDRESSES))
    def the_last_client_of_one_leaves(self, address: str) -> None:
        self.busy.discard(address)

    @rule(seconds=st.floats(0, 10))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    def passing(self) -> set[str]:
        return {address for address, results in self.results.items() if results[-1]}

    def failed_enough(self) -> set[str]:
        return {address for address, results in self.results.items() if not any(results[-ENOUGH:])} - {
            address for address, results in self.results.items() if len(results) < ENOUGH
        }

    @invariant()
    def none_that_failed_its_last_checks_is_chosen_while_another_passes(self) -> None:
        order = list(self.state.order())
        if self.passing():
            assert order[0] not in self.failed_enough()
            assert not any(
                order.index(bad) < order.index(fine) for bad in self.failed_enough() for fine in self.passing()
            )

    @invariant()
    def everything_known_is_tried(self) -> None:
        assert sorted(self.state.order()) == sorted(self.state.known)
        assert self.named <= set(self.state.known)

    @invariant()
    def what_carries_connections_is_never_forgotten(self) -> None:
        assert self.busy <= set(self.state.known)

    @invariant()
    def only_bad_ones_are_cut_and_only_if_another_passes(self) -> None:
        assert set(self.state.cut()) == (self.failed_enough() if self.passing() else set())

    @invariant()
    def the_current_one_is_kept_while_it_passes_and_is_named(self) -> None:
        current = self.state.current
        if current in self.passing() & self.named:
            assert self.state.order()[0] == current

    @invariant()
    def nothing_waits_longer_than_the_pause_for_its_next_check(self) -> None:
        assert set(self.state.due(self.now + EVERY)) == set(self.state.known)


Histories.TestCase.settings = examples(150, stateful_step_count=40)
TestHistories = Histories.TestCase
