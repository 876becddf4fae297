"""A note: one entry of an agent's report. Agents write it, views read it."""

from __future__ import annotations

from dataclasses import dataclass

AGREEMENT = "agreement"
"""The step whose notes say that members of etcd hold different data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One entry of the report, about one part of the cluster."""

    step: str
    about: str
    """`main/a`, `vol-1`, `api.internal.dev`; "" for the step as a whole."""
    text: str
    hint: str = ""
    saw: str = ""
    since: float | None = None
    """When a wait began, in seconds since 1970 by the clock of this machine; None if the time was not taken."""
