"""Which API server is used: by example."""

from __future__ import annotations

from protokube.apiproxy.backends import ENOUGH, EVERY, SOON, Backends, Health

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def backends(*addresses: str, identity: str = "node-1") -> Backends:
    return Backends(identity=identity).resolved(addresses, 0.0)


def good(*addresses: str) -> Backends:
    state = backends(*addresses)
    for address in addresses:
        state = state.checked(address, "", 0.0)
    return state


def failing(state: Backends, address: str, times: int = ENOUGH) -> Backends:
    for _ in range(times):
        state = state.checked(address, "no answer", 0.0)
    return state


def test_one_failed_check_is_a_doubt_and_three_running_are_enough() -> None:
    state = good(A)
    seen = []
    for _ in range(ENOUGH):
        state = state.checked(A, "no answer", 0.0)
        seen.append(state.known[A].health)
    assert seen == [Health.DOUBTFUL, Health.DOUBTFUL, Health.BAD]
    assert state.checked(A, "", 0.0).known[A].health is Health.GOOD


def test_failures_that_do_not_follow_each_other_are_never_enough() -> None:
    state = good(A)
    for _ in range(10):
        state = failing(state, A, ENOUGH - 1).checked(A, "", 0.0)
    assert state.known[A].health is Health.GOOD


def test_doubt_is_settled_soon_and_everything_else_is_asked_at_leisure() -> None:
    state = good(A)
    assert state.known[A].due == EVERY
    assert failing(state, A, 1).known[A].due == SOON
    assert failing(state, A).known[A].due == EVERY


def test_connections_stay_with_the_one_they_go_to_while_it_is_good() -> None:
    first, second = good(A, B).order()
    state = good(A, B).connected(second)
    assert state.order()[0] == second
    assert failing(state, second, 1).order()[0] == first
    moved = failing(state, second).connected(first)
    assert moved.checked(second, "", 0.0).order()[0] == first


def test_machines_spread_over_the_api_servers() -> None:
    chosen = [Backends(identity=f"node-{number}").resolved([A, B, C], 0.0).order()[0] for number in range(300)]
    assert all(60 <= chosen.count(address) <= 140 for address in (A, B, C))


def test_one_that_was_never_checked_comes_before_one_in_doubt_and_after_a_good_one() -> None:
    state = failing(good(A, B), A, 1).resolved([A, B, C], 0.0)
    assert list(state.order()) == [B, C, A]


def test_a_bad_one_is_cut_once_there_is_somewhere_better_to_go() -> None:
    state = failing(failing(good(A, B), A), B)
    assert state.cut() == set()
    assert state.checked(B, "", 0.0).cut() == {A}


def test_while_all_are_bad_each_gets_its_turn() -> None:
    state = failing(failing(failing(good(A, B, C), A), B), C)
    tried = []
    for _ in range(6):
        tried.append(state.order()[0])
        state = state.trying(tried[-1]).connected(tried[-1])
    assert tried == tried[:3] * 2
    assert state.current == ""
    assert sorted(tried[:3]) == [A, B, C]


def test_a_name_that_leads_nowhere_is_no_news() -> None:
    state = good(A, B)
    assert state.resolved([], 5.0) == state


def test_one_that_left_the_name_is_drained_and_forgotten_with_its_last_connection() -> None:
    state = good(A, B).connected(A).resolved([B], 5.0, busy=[A])
    assert not state.known[A].listed
    assert state.order()[0] == B
    assert state.cut() == set()
    assert failing(state, A).cut() == {A}
    assert list(state.resolved([B], 10.0).known) == [B]


def test_one_that_left_is_kept_while_it_is_all_that_works() -> None:
    state = failing(good(A, B), B).resolved([B], 5.0)
    assert list(state.order()) == [A, B]
    assert list(state.checked(B, "", 6.0).resolved([B], 10.0).known) == [B]


def test_one_that_comes_back_is_itself_again() -> None:
    state = good(A, B).resolved([B], 5.0, busy=[A]).resolved([A, B], 10.0)
    assert state.known[A].listed
    assert state.known[A].health is Health.GOOD


def test_one_that_refused_a_connection_is_checked_at_once_and_not_judged_by_it() -> None:
    state = good(A, B).suspected(A, 1.0)
    assert state.due(1.0) == [A]
    assert state.known[A].health is Health.GOOD


def test_what_is_said_of_one_that_is_gone_changes_nothing() -> None:
    state = good(A)
    assert state.checked(B, "no answer", 1.0) == state
    assert state.suspected(B, 1.0) == state
    assert state.trying(B) == state
    assert state.connected(B) == state


def test_the_order_does_not_depend_on_the_order_of_the_addresses() -> None:
    assert backends(A, B, C).order() == backends(C, A, B).order()
