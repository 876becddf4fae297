"""Ensure that the kubelet runs, once disks and names are ready; restart it after its certificate was renewed.

Started too early, it would start pods that must fail, and then back off; a machine without a free volume must become a
node too. So it waits for what this master holds, but only for a limited time.

Before 1.36 a kubelet serves API servers with the certificate that it read at its start. Its pods keep running during a
restart, but if it did not come back, they would be unmanaged: so one master restarts at a time, and only while all
others serve.
"""

from __future__ import annotations

from dataclasses import dataclass

from protokube.agent import links
from protokube.agent.cache import StepCache
from protokube.agent.controlplane import nodekeys, restarts
from protokube.agent.round import Round
from protokube.manifests.etcd import PKI
from protokube.members.start_values import Join, Start
from protokube.pki.renewal import Place, due_left, in_slot

STEP = "kubelet"
UNIT = "kubelet.service"
PATIENCE = 60.0
LONGEST_SLOT = 600.0
"""Longest time slot, in seconds, in which one master may restart its kubelet."""


@dataclass(slots=True)
class KubeletCache(StepCache):
    current: float | None = None
    """When the certificate was written that the running kubelet has read."""


def sync(round_: Round) -> None:
    missing = _not_ready(round_)
    if missing and round_.waited(f"{STEP} ") < PATIENCE:
        round_.waiting(STEP, "", f"it is started when {missing}, or after {PATIENCE:.0f} s")
        return
    if round_.edges.units.ensure_started(UNIT):
        round_.report.done(STEP, "started" + (f" before {missing}" if missing else ""))
    elif is_outdated(round_) and is_turn(round_) and restarts.others_serve(round_):
        round_.edges.units.restart(UNIT)
        round_.report.done(STEP, "restarted: its certificate was renewed")


def is_outdated(round_: Round) -> bool:
    """Whether a certificate that it reads only at its start was written since."""
    edges, now = round_.edges, round_.edges.clock.now()
    written = _written(round_)
    if written is None or written > now:  # the clock was set back, so the order is unknown
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
    """Whether it is this master's time slot; with one master, always."""
    place, length = place_of(round_), round_.wanted.certificate_lifetime
    return place.count == 1 or in_slot(round_.edges.clock.now(), slot_of(length, place), place)


def place_of(round_: Round) -> Place:
    """This master's place in the order of restarts: by the etcd member that it holds, or that its group may hold."""
    if not round_.wanted.etcd:
        return Place()
    etcd = round_.wanted.etcd[0]
    held = {disk.member.name for disk in round_.mounted if disk.etcd.key == etcd.key}
    own = {each.name for each in etcd.members if each.group == round_.edges.me.group}
    members = sorted(each.name for each in etcd.members)
    mine = min(held or own or members)
    return Place(members.index(mine), len(members))


def slot_of(length: float, place: Place) -> float:
    """Length of a time slot: each master has a whole one between renewal and expiry."""
    return min(LONGEST_SLOT, length * due_left(length) / (place.count + 1))


def _written(round_: Round) -> float | None:
    """When the newest certificate that needs a restart was written; None without one."""
    wanted, names = round_.wanted, []
    if not wanted.kubelet_reloads:
        names.append(nodekeys.SERVER)
    if wanted.certificate_lifetime < restarts.NOTICED:  # it reloads its client certificate too, but not at once
        names.append(nodekeys.CLIENT)
    if not wanted.kubelet_kubeconfig or not names:
        return None
    try:
        return max(round_.edges.inside(f"{PKI}/{name}.crt").stat().st_mtime for name in names)
    except OSError:
        return None


def _not_ready(round_: Round) -> str:
    """What the kubelet should wait for on this master; "" if nothing."""
    for key in (each.key for each in round_.wanted.etcd):
        mine = [disk for disk in round_.mounted if disk.etcd.key == key]
        if not mine:
            return f"a volume of {key} is mounted here"
        for disk in mine:
            serving = isinstance(round_.decisions.get(disk.volume), Start | Join)
            if serving and not links.is_linked(round_, disk):
                return f"the manifest of {disk.name} is linked"
    return ""
