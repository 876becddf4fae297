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
from protokube.agent.round import Round
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


def sync(round_: Round) -> None:
    missing = _not_ready(round_)
    if missing and round_.waited(f"{STEP} ") < PATIENCE:
        round_.waiting(STEP, "", f"it is started when {missing}, or after {PATIENCE:.0f} s")
        return
    if round_.edges.units.ensure_started(UNIT):
        round_.report.done(STEP, "started" + (f" before {missing}" if missing else ""))
    elif is_outdated(round_) and is_turn(round_) and restarts.others_serve(round_):
        round_.edges.units.restart(UNIT)
        round_.report.done(STEP, "started anew: its certificate was renewed")


def is_outdated(round_: Round) -> bool:
    """Whether a certificate that it reads at its start only was written since."""
    edges, now = round_.edges, round_.edges.clock.now()
    written = _written(round_)
    if written is None or written > now:  # a clock that was set back says nothing about what was first
        return False
    if edges.cache.of(KubeletCache).current == written:
        return False
    running = edges.units.running_for(UNIT)
    if running is None:
        return False
    if now - running < written:
        return True
    edges.cache.of(KubeletCache).current = written
    return False


def is_turn(round_: Round) -> bool:
    """Whether the clock is in a slot of this master; alone, it always is."""
    place, length = place_of(round_), round_.wanted.certificate_lifetime
    return place.count == 1 or in_slot(round_.edges.clock.now(), slot_of(length, place), place)


def place_of(round_: Round) -> Place:
    """Masters take turns by the members of etcd that they hold, or are there to hold."""
    if not round_.wanted.etcd:
        return Place()
    etcd = round_.wanted.etcd[0]
    held = {disk.member.name for disk in round_.mounted if disk.etcd.key == etcd.key}
    own = {each.name for each in etcd.members if each.group == round_.edges.me.group}
    members = sorted(each.name for each in etcd.members)
    mine = min(held or own or members)
    return Place(members.index(mine), len(members))


def slot_of(length: float, place: Place) -> float:
    """Between due and ended, everybody has a whole one."""
    return min(LONGEST_SLOT, length * due_left(length) / (place.count + 1))


def _written(round_: Round) -> float | None:
    """When the newest of them was; None while there are none to go by."""
    wanted, names = round_.wanted, []
    if not wanted.kubelet_reloads:
        names.append(nodekeys.SERVER)
    if wanted.certificate_lifetime < restarts.NOTICED:  # what it shows as a client it reads again too, if not at once
        names.append(nodekeys.CLIENT)
    if not wanted.kubelet_kubeconfig or not names:
        return None
    try:
        return max(round_.edges.inside(f"{PKI}/{name}.crt").stat().st_mtime for name in names)
    except OSError:
        return None


def _not_ready(round_: Round) -> str:
    """What of this master's own work the kubelet should not run ahead of."""
    for key in (each.key for each in round_.wanted.etcd):
        mine = [disk for disk in round_.mounted if disk.etcd.key == key]
        if not mine:
            return f"a volume of {key} is mounted here"
        for disk in mine:
            serving = isinstance(round_.decisions.get(disk.volume), Start | Join)
            if serving and not links.is_linked(round_, disk):
                return f"the manifest of {disk.name} is linked"
    return ""
