"""Watch a cluster lose something and recover, and judge what can be seen of that. Pure: the looks come from outside.

The hard part is what happened between two looks: a machine may have died and been replaced. So a volume that changed
its holder, or its epoch, counts as a loss, even if everything is healthy again when it is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from protokube.view import promises
from protokube.view.cluster import ClusterView


@dataclass(slots=True)
class Recovery:
    """Fed with one look after the other; the first is that of a cluster that is ready."""

    before: ClusterView
    now: ClusterView = field(init=False)
    lost_at: float | None = None
    """By the clock of the looks: when the first loss was seen; None before."""
    losses: tuple[str, ...] = ()
    """What was seen to be lost, in sentences: first seen, first listed."""
    seconds: float | None = None
    """From there until everything was ready again; None before."""

    def __post_init__(self) -> None:
        self.now = self.before

    def feed(self, view: ClusterView) -> tuple[str, ...]:
        """Take one more look; the losses that it shows first."""
        self.now = view
        new = tuple(each for each in dict.fromkeys(losses(self.before, view)) if each not in self.losses)
        self.losses += new
        if self.losses and self.lost_at is None:
            self.lost_at = view.at
        if self.lost_at is not None:
            self.seconds = view.at - self.lost_at if view.ready else None
        return new

    @property
    def recovered(self) -> bool:
        return self.seconds is not None

    @property
    def broken(self) -> tuple[str, ...]:
        """The promises that were not kept; those about the end only once everything is ready."""
        return tuple(_broken(self.before, self.now))

    @property
    def missing(self) -> tuple[str, ...]:
        """What it still waits for."""
        if self.lost_at is None:
            return ("a loss: nothing was lost while it was watched",)
        return () if self.recovered else self.now.lacks


def losses(before: ClusterView, after: ClusterView) -> Iterator[str]:
    """What one look shows that a fault must have caused."""
    for host in before.hosts:
        now = after.host(host.name)
        if host.alive and not host.dead and (now is None or not now.alive or now.dead):
            yield f"{host.name} is gone"
    for disk in before.disks if after.volumes_known else ():
        there = after.disk(disk.id)
        if there is None:
            yield f"{disk.id} of {disk.member} is gone"
        elif there.attached_to != disk.attached_to:
            yield f"{disk.id} of {disk.member} left {disk.attached_to or 'nobody'}"
        elif there.epoch != disk.epoch:
            yield f"{disk.id} of {disk.member} was mounted anew by {disk.attached_to or 'nobody'}"
    for member in before.members:
        found = after.member(member.member)
        if member.healthy and found is not None and found.asked and not found.healthy:
            yield f"{member.name} is not healthy"
    for host_name in after.not_serving:
        if host_name not in before.not_serving:
            yield f"the API server of {host_name} is not ready"


def _broken(before: ClusterView, after: ClusterView) -> Iterator[str]:
    yield from promises.lower_epochs(before, after)
    for key in dict.fromkeys(each.key for each in before.members):
        yield from promises.other_history(before, after, key)
        if after.ready:
            replaced = [
                each.name
                for each in before.members
                if each.key == key and (now := after.member(each.member)) is not None and now.volume != each.volume
            ]
            yield from promises.wrong_members(before.listed(key), after.listed(key), replaced)
    if after.ready:
        yield from promises.wrong_takeovers(before, after)
