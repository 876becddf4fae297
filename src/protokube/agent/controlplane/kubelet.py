"""Start the kubelet, each round, once disks and names are ready; start it anew when its certificate was renewed.

Too early, it would start pods that must fail and then hold them back; too late, and a machine without a free volume
would never be a node. So it waits for what this master holds, but not for ever.

Before 1.36 it serves API servers with the certificate that it read at its start. Its pods go on while it is
started anew, but should it not come back, nobody looks after them: so one master after the other, and only while all
others serve.
"""

from __future__ import annotations

from dataclasses import dataclass

from protokube.agent import links
from protokube.agent.cache import StepCache
from protokube.agent.controlplane import nodekeys, restarts
from protokube.agent.world import Turn
from protokube.manifests.etcd import PKI
from protokube.members.start import Join, Start
from protokube.pki.renewal import Place, due_left, in_slot

STEP = "kubelet"
UNIT = "kubelet.service"
PATIENCE = 60.0
LONGEST_SLOT = 600.0
"""Seconds of the clock that are one master's to start its kubelet anew."""


@dataclass(slots=True)
class KubeletCache(StepCache):
    current: float | None = None
    """When the certificate was written that the running kubelet was seen to have read."""


def sync(turn: Turn) -> None:
    missing = _not_ready(turn)
    if missing and turn.waited(f"{STEP} ") < PATIENCE:
        turn.waiting(STEP, "", f"it is started when {missing}, or after {PATIENCE:.0f} s")
        return
    if turn.world.units.ensure_started(UNIT):
        turn.report.done(STEP, "started" + (f" before {missing}" if missing else ""))
    elif is_outdated(turn) and is_turn(turn) and restarts.others_serve(turn):
        turn.world.units.restart(UNIT)
        turn.report.done(STEP, "started anew: its certificate was renewed")


def is_outdated(turn: Turn) -> bool:
    """Whether a certificate that it reads at its start only was written since."""
    world, now = turn.world, turn.world.clock.now()
    written = _written(turn)
    if written is None or written > now:  # a clock that was set back says nothing about what was first
        return False
    if world.memory.of(KubeletCache).current == written:
        return False
    running = world.units.running_for(UNIT)
    if running is None:
        return False
    if now - running < written:
        return True
    world.memory.of(KubeletCache).current = written
    return False


def is_turn(turn: Turn) -> bool:
    """Whether the clock is in a slot of this master; alone, it always is."""
    place, length = place_of(turn), turn.wanted.certificate_lifetime
    return place.count == 1 or in_slot(turn.world.clock.now(), slot_of(length, place), place)


def place_of(turn: Turn) -> Place:
    """Masters take turns by the members of etcd that they hold, or are there to hold."""
    if not turn.wanted.etcd:
        return Place()
    etcd = turn.wanted.etcd[0]
    held = {home.member.name for home in turn.homes if home.etcd.key == etcd.key}
    own = {each.name for each in etcd.members if each.group == turn.world.me.group}
    members = sorted(each.name for each in etcd.members)
    mine = min(held or own or members)
    return Place(members.index(mine), len(members))


def slot_of(length: float, place: Place) -> float:
    """Between due and ended, everybody has a whole one."""
    return min(LONGEST_SLOT, length * due_left(length) / (place.count + 1))


def _written(turn: Turn) -> float | None:
    """When the newest of them was; None while there are none to go by."""
    wanted, names = turn.wanted, []
    if not wanted.kubelet_reloads:
        names.append(nodekeys.SERVER)
    if wanted.certificate_lifetime < restarts.NOTICED:  # what it shows as a client it reads again too, if not at once
        names.append(nodekeys.CLIENT)
    if not wanted.kubelet_kubeconfig or not names:
        return None
    try:
        return max(turn.world.inside(f"{PKI}/{name}.crt").stat().st_mtime for name in names)
    except OSError:
        return None


def _not_ready(turn: Turn) -> str:
    """What of this master's own work the kubelet should not run ahead of."""
    for key in (each.key for each in turn.wanted.etcd):
        mine = [home for home in turn.homes if home.etcd.key == key]
        if not mine:
            return f"a volume of {key} is mounted here"
        for home in mine:
            serving = isinstance(turn.decisions.get(home.volume), Start | Join)
            if serving and not links.is_linked(turn, home):
                return f"the manifest of {home.name} is linked"
    return ""
