"""How many examples a property test tries: all of them in `make test`, a twentieth in the fast loop of `make unit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import settings

FAST = "fast"
"""The profile of the fast loop."""
SHARE = 20
FEWEST = 5
Value = TypeVar("Value")


def examples(number: int, parent: settings | None = None, **more: Any) -> settings:
    """Settings of a property test that tries so many examples."""
    return settings(parent, max_examples=max(number // SHARE, FEWEST) if _fast() else number, **more)


def ends(values: Sequence[Value]) -> Sequence[Value]:
    """All of these values, and in the fast loop the first and the last."""
    return [values[0], values[-1]] if _fast() else values


def _fast() -> bool:
    return settings.get_current_profile_name() == FAST
