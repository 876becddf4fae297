"""Status conditions of an object, by the Kubernetes API conventions: one per type, changed only if it differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

Tree = dict[str, Any]
Status = Literal["True", "False", "Unknown"]
MESSAGE_LIMIT = 32768
"""The API server accepts no longer message."""


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
    """All conditions with this one set; equal to `observed` if nothing changes.

    `lastTransitionTime` moves only when the status changes, not for another reason or message.
    """
    condition: Tree = {"type": type, "status": status, "reason": reason, "message": message[:MESSAGE_LIMIT]}
    if generation is not None:
        condition["observedGeneration"] = generation
    found = [dict(each) for each in observed]
    old = next((each for each in found if each.get("type") == type), None)
    if old is None:
        return [*found, condition | {"lastTransitionTime": now}]
    unchanged = old.get("status") == status and "lastTransitionTime" in old
    condition["lastTransitionTime"] = old["lastTransitionTime"] if unchanged else now
    if generation is None:
        old.pop("observedGeneration", None)
    new = old | condition  # fields that others added stay
    return [new if each is old else each for each in found]


def without_condition(observed: Sequence[Mapping[str, Any]], type: str) -> list[Tree]:  # noqa: A002
    return [dict(each) for each in observed if each.get("type") != type]
