"""Conditions of an object, as everybody in Kubernetes reads them: one for each type, changed only if there is news."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

Tree = dict[str, Any]
Status = Literal["True", "False", "Unknown"]
MESSAGE_LIMIT = 32768
"""What the API server takes."""


def with_condition(
    observed: Sequence[Mapping[str, Any]],
    *,
    type: str,  # noqa: A002  # as the API calls it
    status: Status,
    reason: str,
    message: str,
    now: str,
    generation: int | None = None,
) -> list[Tree]:
    """All conditions with this one among them; equal to what was observed if there is nothing new.

    The time of the last transition is that of a change of the status: another message is no transition.
    """
    told: Tree = {"type": type, "status": status, "reason": reason, "message": message[:MESSAGE_LIMIT]}
    if generation is not None:
        told["observedGeneration"] = generation
    found = [dict(each) for each in observed]
    old = next((each for each in found if each.get("type") == type), None)
    if old is None:
        return [*found, told | {"lastTransitionTime": now}]
    unchanged = old.get("status") == status and "lastTransitionTime" in old
    told["lastTransitionTime"] = old["lastTransitionTime"] if unchanged else now
    if generation is None:
        old.pop("observedGeneration", None)
    new = old | told  # what others keep there stays
    return [new if each is old else each for each in found]


def without_condition(observed: Sequence[Mapping[str, Any]], type: str) -> list[Tree]:  # noqa: A002
    return [dict(each) for each in observed if each.get("type") != type]
