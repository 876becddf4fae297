from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from protokube.controllers.conditions import Status, with_condition, without_condition

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
READY = {"type": "Ready", "status": "True", "reason": "Fine", "message": "all is well", "lastTransitionTime": THEN}
OTHER = {"type": "Theirs", "status": "Unknown", "special": 1}


def updated(observed: list[dict[str, Any]], status: Status, message: str = "all is well") -> list[dict[str, Any]]:
    return with_condition(observed, type="Ready", status=status, reason="Fine", message=message, now=NOW)


def test_a_new_condition_joins_the_others() -> None:
    assert updated([OTHER], "True") == [OTHER, {**READY, "lastTransitionTime": NOW}]


def test_the_same_again_changes_nothing_so_nothing_need_be_written() -> None:
    assert updated([READY, OTHER], "True") == [READY, OTHER]


def test_another_message_is_no_transition_and_another_status_is_one() -> None:
    assert updated([READY], "True", "better")[0]["lastTransitionTime"] == THEN
    assert updated([READY], "False")[0]["lastTransitionTime"] == NOW


def test_it_says_which_generation_it_is_about() -> None:
    made = with_condition([READY], type="Ready", status="True", reason="R", message="", now=NOW, generation=3)
    assert made[0]["observedGeneration"] == 3
    assert "observedGeneration" not in updated(made, "True")[0]


def test_a_condition_can_be_taken_away() -> None:
    assert without_condition([READY, OTHER], "Ready") == [OTHER]


@given(
    st.lists(st.sampled_from(["A", "B", "C"]), unique=True),
    st.sampled_from(["A", "D"]),
    st.sampled_from(["True", "False"]),
)
def test_the_others_keep_their_places_and_the_input_is_not_touched(
    types: list[str], wanted: str, status: Status
) -> None:
    observed = [{"type": each, "status": "True", "lastTransitionTime": THEN} for each in types]
    before = [dict(each) for each in observed]
    made = with_condition(observed, type=wanted, status=status, reason="R", message="m", now=NOW)
    assert observed == before
    assert [each["type"] for each in made] == (types if wanted in types else [*types, wanted])
    assert [each for each in made if each["type"] != wanted] == [each for each in before if each["type"] != wanted]
    assert with_condition(made, type=wanted, status=status, reason="R", message="m", now="later") == made
