"""One drill under way: what it is aimed at, what it has recorded so far, and waiting for what has to follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from protokube.local.drill.ground import Ground, Hand
from protokube.local.drill.values import Milestone, OldHolder, Promises, Reached, Step
from protokube.local.view.cluster import ClusterView
from protokube.local.view.values import DiskView, HostView, MemberView

EVERY = 0.05
"""Seconds between two looks: what is shorter is not seen."""

Tell = Callable[[Step], None]


class Overdue(Exception):
    """The time is up, and these are still waited for."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__("; ".join(missing))
        self.missing = tuple(missing)


class Run:
    """Filled by a script."""

    def __init__(
        self, ground: Ground, hand: Hand, before: ClusterView, member: MemberView, *, seconds: float, tell: Tell
    ) -> None:
        self.ground, self.hand, self.before, self.member = ground, hand, before, member
        self.host, self.disk = aim(before, member)
        self.target = f"{self.host.name}, which holds {member.name} on {self.disk.id}"
        self.promises = Promises()
        self.steps: list[Step] = []
        self.reached: list[Reached] = []
        self.old: OldHolder | None = None
        self.began: float | None = None
        self._end, self._tell = ground.now() + seconds, tell

    @property
    def client_port(self) -> int:
        urls = [
            url
            for each in self.before.listed(self.member.key)
            for url in each.client_urls
            if each.name == self.member.name
        ]
        return int(urls[0].rpartition(":")[2])

    def blow(self, text: str, call: str, **arguments: Any) -> None:
        """Have the cloud do something; the first one starts the clock."""
        if self.began is None:
            self.began = self.ground.now()
        at = self.ground.now()
        self.ground.tell(call, **arguments)
        self._step(at, text)

    def note(self, text: str) -> None:
        self._step(self.ground.now(), text)

    def wait(self, seconds: float) -> None:
        self.ground.sleep(seconds)

    def until(self, milestones: Sequence[Milestone]) -> None:
        """Look until all of them were reached, in whatever order; Overdue when the time is up."""
        left = list(milestones)
        while left:
            view = self.ground.glance()
            for each in [one for one in left if not one.last] or left.copy():
                if said := each.reached(view):
                    left.remove(each)
                    at = self._step(self.ground.now(), said)
                    self.reached += [Reached(each.kind, at)] * bool(each.kind)
            if left and self.ground.now() > self._end:
                raise Overdue([each.awaited for each in left])
            if left:
                self.ground.sleep(EVERY)

    def _step(self, at: float, text: str) -> float:
        step = Step(at - (self.began if self.began is not None else at), text)
        self.steps.append(step)
        self._tell(step)
        return step.at


def aim(view: ClusterView, member: MemberView) -> tuple[HostView, DiskView]:
    """The host and the volume of a member that serves."""
    host, disk = view.host(member.host), view.disk(member.volume)
    assert host is not None
    assert disk is not None
    return host, disk
