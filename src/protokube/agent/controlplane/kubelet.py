"""Ensure that the kubelet runs, once disks and names are ready; restart it after its files or certificate changed.

Started too early, it would start pods that must fail, and then back off; a machine without a free volume must become a
node too. So it waits for what this master holds, but only for a limited time.

Before 1.36 a kubelet serves API servers with the certificate that it read at its start. Its pods keep running during a
restart, but if it did not come back, they would be unmanaged: so one master restarts at a time, and only while all
others serve. A changed file is part of a changed configuration, which masters take one at a time anyway: that restart
does not wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from protokube.agent import links
from protokube.agent.cache import StepCache, is_recent
from protokube.agent.controlplane import kubelet_files, nodekeys, restarts
from protokube.agent.round import Round
from protokube.manifests.etcd import PKI
from protokube.members.start_values import Join, Start
from protokube.pki.renewal import Place, due_left, in_slot

STEP = "kubelet"
UNIT = "kubelet.service"
PATIENCE = 60.0
STOPS_WITHIN = 30.0
"""Seconds after a restart was requested in which the former kubelet may still run."""
LONGEST_SLOT = 600.0
"""Longest time slot, in seconds, in which one master may restart its kubelet."""


@dataclass(slots=True)
class KubeletCache(StepCache):
    current: float | None = None
    """When the certificate was written that the running kubelet has read."""
    files: dict[str, float] = field(default_factory=dict)
    """By path: when the file was written that the running kubelet has read."""
    restarted: float | None = None
    """When a restart was last requested, by the monotonic clock."""


def sync(round_: Round) -> None:
    written = kubelet_files.write(round_, STEP)
    missing = _not_ready(round_)
    if missing and round_.waited(f"{STEP} ") < PATIENCE:
        round_.waiting(STEP, "", f"it is started when {missing}, or after {PATIENCE:.0f} s")
        return
    if round_.edges.units.ensure_started(UNIT):
        round_.edges.cache.of(KubeletCache).files = kubelet_files.write_times(round_)
        round_.report.done(STEP, "started" + (f" before {missing}" if missing else ""))
    elif reason := why_restart(round_, written):
        round_.edges.units.restart(UNIT)
        round_.edges.cache.of(KubeletCache).restarted = round_.edges.clock.monotonic()
        round_.report.done(STEP, f"restarted: {reason}")


def why_restart(round_: Round, written: Sequence[str] = ()) -> str:
    """Why the running kubelet restarts now, "" if it does not; `written` are its files that this round wrote."""
    if path := next(iter(written), "") or changed_file(round_):
        return f"{path} changed"
    if is_outdated(round_) and is_turn(round_) and restarts.others_serve(round_):
        return "its certificate was renewed"
    return ""


def changed_file(round_: Round) -> str:
    """A file that an earlier round wrote after the kubelet started; "" if it has read all of them.

    The agent may have been stopped between the write and the restart. File times are too coarse for a write right after
    the start, on some file systems for a whole second: it counts as before the start, because the usual order is a
    start right after the files were written.
    """
    cache, times = round_.edges.cache.of(KubeletCache), kubelet_files.write_times(round_)
    if times == cache.files or is_recent(cache.restarted, round_.edges.clock.monotonic(), STOPS_WITHIN):
        return ""
    started, now = _started(round_), round_.edges.clock.now()
    if started is None:
        return ""
    path = kubelet_files.newer(times, started, now)
    if not path and all(at <= now for at in times.values()):
        cache.files = times
    return path


def is_outdated(round_: Round) -> bool:
    """Whether a certificate that it reads only at its start was written since."""
    cache, written = round_.edges.cache.of(KubeletCache), _written(round_)
    if written is None or written > round_.edges.clock.now():  # the clock was set back, so the order is unknown
        return False
    if cache.current == written:
        return False
    started = _started(round_)
    if started is None:
        return False
    if started < written:
        return True
    cache.current = written
    return False


def _started(round_: Round) -> float | None:
    """When the running kubelet started; None if it does not run."""
    running = round_.edges.units.running_for(UNIT)
    # The clock is read last: a slow answer must not make the start appear earlier than a file that was written before.
    return None if running is None else round_.edges.clock.now() - running


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
