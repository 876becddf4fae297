"""What was reported and cannot all be true: pure.

Only current reports count: what a stale one says was true once. Reports are up to a round old, so a handover may show
as a contradiction for some seconds. It is reported all the same:
while it lasts, either of the two reports may be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from protokube.members.phases import OWN, Phase, from_text
from protokube.view.seen import SeenCluster
from protokube.view.values import AgentView

CLAIMS = OWN - {Phase.SUPERSEDED, Phase.UNUSED}
"""What an agent says of volumes that it holds and of no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """One, in a sentence."""

    text: str
    blocks: bool = True
    """The cluster is not ready while it stands."""
    volume: str = ""
    """Which it is about, if it is about one."""


def contradictions(view: SeenCluster) -> Iterator[Contradiction]:
    claims = view.claim_election
    if len(claims) > 1:
        yield Contradiction(text=f"{' and '.join(claims)} both report that they are elected")
    current = [each for each in view.agents if view.current(each.host)]
    claimed: dict[str, list[tuple[str, Phase]]] = {}
    for agent in current:
        for volume, phase in _claims(agent):
            claimed.setdefault(volume, []).append((agent.host, phase))
    for volume, holders in claimed.items():
        yield from _about_volume(view, volume, holders)
    yield from _refused_and_healthy(view)
    for host in view.hosts:
        report = view.report(host.name)
        if host.dead and host.alive and report and not report.stale:
            text = f"{host.name} is declared dead, and its agent reported {report.age:.0f} s ago"
            yield Contradiction(text=text, blocks=False)  # its disks were cut: what it does reaches nobody


def _claims(agent: AgentView) -> Iterator[tuple[str, Phase]]:
    for volume, text in agent.phases.items():
        phase = from_text(text)
        if phase is not None and phase in CLAIMS:
            yield volume, phase


def _about_volume(view: SeenCluster, volume: str, holders: list[tuple[str, Phase]]) -> Iterator[Contradiction]:
    if len(holders) > 1:
        claims = " and ".join(f"{host} ({phase.value})" for host, phase in holders)
        yield Contradiction(text=f"{volume} is claimed by {claims}", volume=volume)
        return
    ((host, phase),) = holders
    disk = view.disk(volume)
    if phase is not Phase.SERVING or (disk is not None and disk.attached_to == host):
        return
    where = "which the cloud does not list" if disk is None else f"which is attached to {disk.attached_to or 'nobody'}"
    yield Contradiction(text=f"{host} reports that it serves {volume}, {where}", volume=volume)


def _refused_and_healthy(view: SeenCluster) -> Iterator[Contradiction]:
    for member in view.members:
        disk = view.disk(member.volume)
        phase = from_text(disk.phase) if disk and view.current(disk.attached_to) else None
        if disk and member.healthy and phase is not None and phase.is_refusal:
            text = f"{member.name} answers as healthy, and {disk.attached_to} reports {disk.id} as {phase.value}"
            yield Contradiction(text=text, volume=disk.id)
