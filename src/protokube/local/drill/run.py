"""A running drill: its target, its record so far, and waiting for milestones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from protokube.local.drill.ground import Ground, WriteSession
from protokube.local.drill.values import Milestone, OldHolder, Promises, Reached, Step
from protokube.view.cluster import ClusterView
from protokube.view.values import DiskView, HostView, MemberView

EVERY = 0.05
"""Seconds between two observations; shorter states are missed."""

OnStep = Callable[[Step], None]


class Overdue(Exception):
    """The timeout expired before these milestones were reached."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__("; ".join(missing))
        self.missing = tuple(missing)


class Run:
    """The state of one drill; a script fills it."""

    def __init__(
        self,
        ground: Ground,
        session: WriteSession,
        before: ClusterView,
        member: MemberView,
        *,
        seconds: float,
        on_step: OnStep,
    ) -> None:
        self.ground, self.session, self.before, self.member = ground, session, before, member
        self.host, self.disk = aim(before, member)
        self.target = f"{self.host.name}, which holds {member.name} on {self.disk.id}"
        self.promises = Promises()
        self.steps: list[Step] = []
        self.reached: list[Reached] = []
        self.old: OldHolder | None = None
        self.began: float | None = None
        self._end, self._on_step = ground.now() + seconds, on_step

    @property
    def client_port(self) -> int:
        urls = [
            url
            for each in self.before.listed(self.member.key)
            for url in each.client_urls
            if each.name == self.member.name
        ]
        return int(urls[0].rpartition(":")[2])

    def inject(self, text: str, call: str, **arguments: Any) -> None:
        """Inject a fault by a call of the cloud; the first one starts the clock."""
        if self.began is None:
            self.began = self.ground.now()
        at = self.ground.now()
        self.ground.call(call, **arguments)
        self._step(at, text)

    def note(self, text: str) -> None:
        self._step(self.ground.now(), text)

    def wait(self, seconds: float) -> None:
        self.ground.sleep(seconds)

    def until(self, milestones: Sequence[Milestone]) -> None:
        """Observe until all milestones are reached, in any order. Raises Overdue on timeout."""
        left = list(milestones)
        while left:
            view = self.ground.glance()
            for each in [one for one in left if not one.last] or left.copy():
                if seen := each.reached(view):
                    left.remove(each)
                    at = self._step(self.ground.now(), seen)
                    self.reached += [Reached(each.kind, at)] * bool(each.kind)
            if left and self.ground.now() > self._end:
                raise Overdue([each.awaited for each in left])
            if left:
                self.ground.sleep(EVERY)

    def _step(self, at: float, text: str) -> float:
        step = Step(at - (self.began if self.began is not None else at), text)
        self.steps.append(step)
        self._on_step(step)
        return step.at


def aim(view: ClusterView, member: MemberView) -> tuple[HostView, DiskView]:
    """The host and the volume of a serving member."""
    host, disk = view.host(member.host), view.disk(member.volume)
    assert host is not None
    assert disk is not None
    return host, disk
