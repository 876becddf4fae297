"""The phase of a volume that no machine has yet, or not any more."""

from __future__ import annotations

import pytest

from protokube.members.phases import Phase, phase_of


@pytest.mark.parametrize(
    ("attached_to", "between", "phase"),
    [
        (None, False, Phase.FREE),
        (None, True, Phase.TAKEN),
        ("i-2", False, Phase.TAKEN),
        ("i-2", True, Phase.TAKEN),
        ("i-1", False, Phase.ATTACHED),
        ("i-1", True, Phase.ATTACHED),
    ],
)
def test_a_volume_that_its_provider_has_not_let_go_is_not_free(
    attached_to: str | None, between: bool, phase: Phase
) -> None:
    assert phase_of(attached_to, "i-1", between=between) is phase
