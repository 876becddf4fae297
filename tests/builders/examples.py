"""How many examples a property test tries: all of them in `make test`, a tenth in the fast loop of `make unit`."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

FAST = "fast"
"""The profile of the fast loop."""
SHARE = 10
FEWEST = 5


def examples(number: int, parent: settings | None = None, **more: Any) -> settings:
    """Settings of a property test that tries so many examples."""
    fast = settings.get_current_profile_name() == FAST
    return settings(parent, max_examples=max(number // SHARE, FEWEST) if fast else number, **more)
