"""The script of each drill: inject faults through the cloud, and wait for the milestones of the recovery."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

from protokube.errors import ProtokubeError
from protokube.local.drill.ground import OldHost
from protokube.local.drill.judge import ONE_ROUND
from protokube.local.drill.milestones import (
    API,
    after_a_healed_cable,
    after_a_loss,
    after_a_lost_volume,
    has_peers,
    is_cut_off,
)
from protokube.local.drill.run import Run
from protokube.local.drill.values import OldHolder, Promises

CUT_SECONDS = 8.0
"""Seconds that the cable stays unplugged: longer than a lease, so that the others see the host as gone."""
LONGEST_GAP = 10.0
"""Seconds without an acknowledged write while there is a quorum: an election and a few lost calls."""
API_LIMIT = 15.0
"""Seconds within which a dead master's address is removed from the API's DNS names."""
STEP = 0.1
BEFORE_WAKING = 0.5
"""Seconds in which writes queue up at the frozen old holder before it wakes up."""

Script = Callable[[Run], None]


def kill_master(run: Run) -> None:
    host = run.host.name
    run.promises = _loss(run, (host,))
    run.inject(f"killed {host}", "kill_host", host=host)
    run.until(after_a_loss(run.before, [host]))


def power_off(run: Run) -> None:
    hosts = tuple(each.name for each in run.before.hosts if each.alive and not each.dead)
    taken = tuple(each.id for each in run.before.disks if each.attached_to in hosts)
    run.promises = Promises(taken_over=taken, gone=hosts)
    run.target = f"all hosts: {', '.join(hosts)}"
    run.inject("killed all hosts at once", "power_off")
    run.until(after_a_loss(run.before, hosts))


def lose_volume(run: Run) -> None:
    run.promises = Promises(same_list=False, replaced=run.member.name, longest_gap=_gap(run))
    run.inject(f"deleted {run.disk.id}", "delete_volume", volume=run.disk.id)
    run.until(after_a_lost_volume(run.before, run.disk))


def partition(run: Run) -> None:
    host = run.host.name
    run.promises = Promises(same_homes=True, longest_gap=_gap(run))
    with _undo_on_exit(run, "cut_host", host=host, down=False):
        run.inject(f"pulled the cable of {host}", "cut_host", host=host, down=True)
        run.until([is_cut_off(run.member)])
        run.wait(CUT_SECONDS)
    run.note(f"put the cable of {host} back after {CUT_SECONDS:g} s")
    run.until(after_a_healed_cable(run.member))


def pause_master(run: Run) -> None:
    host = run.host.name
    run.promises = _loss(run, (host,))
    old = run.ground.old_host(run.host, run.client_port)
    with _undo_on_exit(run, "kill_host", host=host):
        run.inject(f"froze {host}", "freeze_host", host=host)
        run.inject(f"declared {host} dead", "declare_dead", host=host, kill=False)
        run.until(after_a_loss(run.before, [host], still_running=True))
        with Attempts(old, f"{run.session.writer.log().prefix}old-") as attempts:
            run.wait(BEFORE_WAKING)
            ran = old.runs_etcd()
            run.inject(f"thawed {host}, whose volume {run.disk.id} another host serves", "thaw_host", host=host)
            gone_after = _await_etcd_exit(run, old)
        run.old = OldHolder(
            host=host,
            ran=ran,
            attempts=len(attempts.keys),
            acknowledged=tuple(attempts.acknowledged),
            landed=tuple(key for key in attempts.keys if run.session.landed(key)),
            gone_after=gone_after,
        )
    run.note(f"the cloud removed {host}")
    run.until([has_peers(run.member.member, run.member.name, not_on=[host])])


def _await_etcd_exit(run: Run, old: OldHost) -> float | None:
    """Seconds until no etcd runs on the old holder; None if one still runs after ONE_ROUND."""
    woke = run.ground.now()
    while (lasted := run.ground.now() - woke) <= ONE_ROUND:
        if not old.runs_etcd():
            run.note(f"no etcd is left on {run.host.name}, {lasted:.2f} s after it woke up")
            return lasted
        run.wait(STEP)
    return None


class Attempts:
    """Concurrent writes through the old holder; the first ones are already waiting when it wakes up."""

    def __init__(self, old: OldHost, prefix: str, *, writers: int = 4) -> None:
        self.keys: list[str] = []
        self.acknowledged: list[str] = []
        self._old, self._prefix, self._stop = old, prefix, threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(each,), daemon=True) for each in range(writers)]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for each in self._threads:
            each.join()

    def _run(self, writer: int) -> None:
        number = 0
        while not number or not self._stop.wait(STEP):
            key = f"{self._prefix}{writer}-{number}"
            self.keys.append(key)
            if self._old.write(key):
                self.acknowledged.append(key)
            number += 1


@contextmanager
def _undo_on_exit(run: Run, call: str, **arguments: object) -> Iterator[None]:
    """Undo a fault on exit, also after an error: a drill leaves nothing broken behind.

    Must be entered before the fault is injected: it may have taken effect even if the cloud's reply was lost.
    """
    try:
        yield
    finally:
        if run.began is not None:
            with suppress(ProtokubeError):  # the host may be gone already, which is fine
                run.ground.call(call, **arguments)


def _loss(run: Run, hosts: tuple[str, ...]) -> Promises:
    taken = tuple(each.id for each in run.before.disks if each.attached_to in hosts)
    gap = _gap(run)
    limits = {} if gap is None else {API: API_LIMIT}
    return Promises(taken_over=taken, gone=hosts, longest_gap=gap, limits=limits)


def _gap(run: Run) -> float | None:
    """None with fewer than three members: there is no quorum while one is away."""
    return LONGEST_GAP if sum(each.key == run.member.key for each in run.before.members) >= 3 else None


SCRIPTS: dict[str, Script] = {
    "kill-master": kill_master,
    "lose-volume": lose_volume,
    "partition": partition,
    "pause-master": pause_master,
    "power-off": power_off,
}
