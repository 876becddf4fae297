"""The phase of a volume: one enum and one function, shared by the agent, `status` and `explain`. Pure.

Normal order: free → attached → mounted → serving; `taken` means attached to another machine, or not free of it yet. The
other phases name the reason why a volume does not get there.
"""

from __future__ import annotations

from enum import Enum

from protokube.members.start_values import Decision, Kind, Refuse, Wait


class Phase(Enum):
    """The phase of one volume, as one machine sees it."""

    FREE = "free"
    TAKEN = "taken"  # attached to another machine, or not detached completely
    ATTACHED = "attached"
    MOUNTED = "mounted"
    SERVING = "serving"  # its manifest is linked, so etcd may run on it
    REFUSED = "refused"
    OLDER = "older copy"
    CLONE = "clone"
    SUPERSEDED = "superseded"  # kept, and neither claimed nor served nor deleted
    REMOVED = "removed"  # its member is no longer in etcd's list; it may rejoin by itself
    BROKEN = "broken"  # its file system or its device fails
    UNUSED = "unused"  # a blank replacement whose member has its former volume

    @property
    def is_refusal(self) -> bool:
        return self in REFUSALS.values()


REFUSALS = {
    Kind.OTHER: Phase.REFUSED,
    Kind.OLDER: Phase.OLDER,
    Kind.CLONE: Phase.CLONE,
    Kind.SUPERSEDED: Phase.SUPERSEDED,
    Kind.REMOVED: Phase.REMOVED,
    Kind.BROKEN: Phase.BROKEN,
}
OWN = frozenset(Phase) - {Phase.FREE, Phase.TAKEN}
"""Phases that a holder can report for its own volume."""


def phase_of(
    attached_to: str | None,
    me: str,
    *,
    mounted: bool = False,
    linked: bool = False,
    decision: Decision | None = None,
    superseded: bool = False,
    spare: bool = False,
    between: bool = False,
) -> Phase:
    """A volume on which etcd may run is SERVING, whatever a record says about it.

    `between`: the provider has not completed a change of its attachment.
    """
    if attached_to == me and linked:
        return Phase.SERVING
    if superseded:
        return Phase.SUPERSEDED
    if spare:
        return Phase.UNUSED
    if attached_to is None:
        return Phase.TAKEN if between else Phase.FREE
    if attached_to != me:
        return Phase.TAKEN
    if isinstance(decision, Refuse) or (isinstance(decision, Wait) and decision.kind is not Kind.OTHER):
        return REFUSALS[decision.kind]
    return Phase.MOUNTED if mounted else Phase.ATTACHED


def from_text(text: str) -> Phase | None:
    return next((each for each in Phase if each.value == text), None)
