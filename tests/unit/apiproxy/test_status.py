"""What the proxy tells of itself."""

from __future__ import annotations

from typing import Any

import pytest

from protokube.apiproxy.backends import ENOUGH, Backends
from protokube.apiproxy.status import addresses_in, sentences, snapshot

A, B = "10.0.0.1", "10.0.0.2"


def shown(state: Backends, unresolved: str = "") -> dict[str, Any]:
    return snapshot(state, name="api.internal.dev", unresolved=unresolved)


def two() -> Backends:
    return Backends(identity="n").resolved([A, B], 0.0).checked(A, "", 0.0).checked(B, "", 0.0).connected(A)


def test_a_quiet_hour_changes_nothing_that_is_told() -> None:
    state = before = two()
    for second in range(0, 3600, 2):
        state = state.checked(A, "", float(second)).resolved([B, A], float(second), [A]).trying(A).connected(A)
    assert shown(state) == shown(before)


def test_a_backend_that_turns_bad_is_told_with_the_reason_and_where_connections_go() -> None:
    state = two()
    for _ in range(ENOUGH):
        state = state.checked(A, "no answer within 2 s", 0.0)
    assert list(sentences(shown(two()), shown(state.connected(B)))) == [
        "10.0.0.1 is bad: no answer within 2 s",
        "connections go to 10.0.0.2",
    ]


def test_coming_going_and_names_that_do_not_resolve_are_told() -> None:
    one, both = Backends(identity="n").resolved([A], 0.0), two()
    assert list(sentences({}, shown(one))) == ["10.0.0.1 is not checked yet"]
    assert list(sentences(shown(both), shown(both.resolved([B], 1.0, [A])))) == [
        "10.0.0.1 is no longer in DNS; it gets no new connections"
    ]
    assert list(sentences(shown(both.resolved([B], 1.0, [A])), shown(both))) == ["10.0.0.1 is in DNS again"]
    assert list(sentences(shown(both), shown(both.resolved([B], 1.0)))) == [
        "10.0.0.1 is removed: the name no longer resolves to it, and its last connection ended"
    ]
    assert list(sentences(shown(both), shown(both, "timed out"))) == [
        "api.internal.dev cannot be resolved, known addresses stay: timed out"
    ]
    assert list(sentences(shown(both, "timed out"), shown(both))) == ["names resolve again"]


def test_the_addresses_of_an_earlier_life_are_found_again() -> None:
    assert addresses_in(shown(two())) == [A, B]


@pytest.mark.parametrize(
    "tree", [None, 3, [], {}, {"backends": None}, {"backends": [3, {}, {"address": 4}, {"address": ""}]}]
)
def test_a_file_that_says_something_else_says_nothing(tree: object) -> None:
    assert addresses_in(tree) == []
