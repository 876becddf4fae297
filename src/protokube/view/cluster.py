"""A cluster as one look saw it, with what follows from that: whether it is ready, and what needs a person."""

from __future__ import annotations

from dataclasses import dataclass

from protokube.view.contradictions import contradictions
from protokube.view.needs import needs
from protokube.view.ready import lacks
from protokube.view.seen import AgentNote, SeenCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView(SeenCluster):
    """What `status`, `explain`, `up` and drills work on."""

    @property
    def ready(self) -> bool:
        return not self.lacks

    @property
    def lacks(self) -> tuple[str, ...]:
        """Why the cluster is not ready, in the order in which things come up; empty if it is."""
        return tuple(lacks(self))

    @property
    def person(self) -> tuple[AgentNote, ...]:
        """What no later round mends by itself: as seen from outside, and as the agents report it."""
        seen = tuple(needs(self))
        known = {each.note.text for each in seen}  # agents report the same in the same words, each for itself
        return (*seen, *(each for each in self.reported_needs if each.note.text not in known))

    @property
    def contradictions(self) -> tuple[str, ...]:
        """What was reported and cannot all be true."""
        return tuple(each.text for each in contradictions(self))


class Standing:
    """For how long the same needs have stood: a note of one round passes by itself, and one that stays does not.

    In a store, a need stays published for a while after it was met. So there it stands only once its agent has
    published it twice.
    """

    def __init__(self) -> None:
        self._since: dict[tuple[str, str, str], tuple[float, float | None]] = {}
        """When each was first seen, and in which publication."""

    def feed(self, view: ClusterView) -> float:
        """Seconds for which the oldest need of this view has stood without a break."""
        found = {(each.host, each.note.step, each.note.about): _publication(view, each) for each in view.person}
        self._since = {need: self._since.get(need, (view.at, at)) for need, at in found.items()}
        stands = [since for need, (since, first) in self._since.items() if first is None or found[need] != first]
        return view.at - min(stands, default=view.at)


def _publication(view: ClusterView, need: AgentNote) -> float | None:
    """Which publication says so; None if this is how things are now: nothing was published, or we saw it ourselves."""
    if not view.source or (not need.host and need.note.step != "lost"):
        return None
    if not need.host:  # by the newest list of volumes, whoever published it
        return max((each.at for each in view.agents), default=None)
    report = view.report(need.host)
    return report.at if report is not None else None
