"""What each drill does, in order. The blows go to the cloud; what has to follow is waited for, mile by mile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

from protokube.errors import ProtokubeError
from protokube.local.drill.ground import Old
from protokube.local.drill.judge import ONE_ROUND
from protokube.local.drill.milestones import API, after_a_healed_cable, after_a_loss, after_a_lost_volume, is_cut_off
from protokube.local.drill.run import Run
from protokube.local.drill.values import OldHolder, Promises

CUT_SECONDS = 8.0
"""How long the cable stays out: longer than a lease, so that the others see the host as gone."""
LONGEST_GAP = 10.0
"""Seconds without an acknowledged write while a quorum is there: an election and a few lost calls."""
API_LIMIT = 15.0
"""Seconds within which a dead master's address leaves the names of the API."""
STEP = 0.1
BEFORE_WAKING = 0.5
"""Seconds in which writes may queue up at a holder of old before it wakes up."""

Script = Callable[[Run], None]


def kill_master(run: Run) -> None:
    host = run.host.name
    run.promises = _loss(run, (host,))
    run.blow(f"killed {host}", "kill_host", host=host)
    run.until(after_a_loss(run.before, [host]))


def power_off(run: Run) -> None:
    hosts = tuple(each.name for each in run.before.hosts if each.alive and not each.dead)
    taken = tuple(each.id for each in run.before.disks if each.attached_to in hosts)
    run.promises = Promises(taken_over=taken, gone=hosts)
    run.target = f"all hosts: {', '.join(hosts)}"
    run.blow("killed all hosts at once", "power_off")
    run.until(after_a_loss(run.before, hosts))


def lose_volume(run: Run) -> None:
    run.promises = Promises(same_list=False, replaced=run.member.name, longest_gap=_gap(run))
    run.blow(f"deleted {run.disk.id}", "delete_volume", volume=run.disk.id)
    run.until(after_a_lost_volume(run.before, run.disk))


def partition(run: Run) -> None:
    host = run.host.name
    run.promises = Promises(same_homes=True, longest_gap=_gap(run))
    with _at_the_end(run, "cut_host", host=host, down=False):
        run.blow(f"pulled the cable of {host}", "cut_host", host=host, down=True)
        run.until([is_cut_off(run.member)])
        run.wait(CUT_SECONDS)
    run.note(f"put the cable of {host} back after {CUT_SECONDS:g} s")
    run.until(after_a_healed_cable(run.member))


def pause_master(run: Run) -> None:
    host = run.host.name
    run.promises = _loss(run, (host,))
    old = run.ground.old(run.host, run.client_port)
    with _at_the_end(run, "kill_host", host=host):
        run.blow(f"froze {host}", "freeze_host", host=host)
        run.blow(f"declared {host} dead", "declare_dead", host=host, kill=False)
        run.until(after_a_loss(run.before, [host], still_running=True))
        with Attempts(old, f"{run.hand.writer.log().prefix}old-") as attempts:
            run.wait(BEFORE_WAKING)
            ran = old.runs_etcd()
            run.blow(f"thawed {host}, whose volume {run.disk.id} another host serves", "thaw_host", host=host)
            gone_after = _await_the_end_of(run, old)
        run.old = OldHolder(
            host=host,
            ran=ran,
            attempts=len(attempts.keys),
            acknowledged=tuple(attempts.acknowledged),
            landed=tuple(key for key in attempts.keys if run.hand.landed(key)),
            gone_after=gone_after,
        )
    run.note(f"the cloud removed {host}")


def _await_the_end_of(run: Run, old: Old) -> float | None:
    """Seconds until no etcd runs there any more; None if one still does after a round."""
    woke = run.ground.now()
    while (lasted := run.ground.now() - woke) <= ONE_ROUND:
        if not old.runs_etcd():
            run.note(f"no etcd is left on {run.host.name}, {lasted:.2f} s after it woke up")
            return lasted
        run.wait(STEP)
    return None


class Attempts:
    """Writes through a holder of old, by several at once: the first ones wait for it before it wakes up."""

    def __init__(self, old: Old, prefix: str, *, writers: int = 4) -> None:
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
def _at_the_end(run: Run, call: str, **arguments: object) -> Iterator[None]:
    """Undo what is done to a host, whatever happens meanwhile: a drill leaves nothing broken behind.

    To be entered before the first blow: also one whose answer never came, or that nobody could be told of, has hit.
    """
    try:
        yield
    finally:
        if run.began is not None:
            with suppress(ProtokubeError):  # a host that is gone by itself is in order, too
                run.ground.tell(call, **arguments)


def _loss(run: Run, hosts: tuple[str, ...]) -> Promises:
    taken = tuple(each.id for each in run.before.disks if each.attached_to in hosts)
    gap = _gap(run)
    limits = {} if gap is None else {API: API_LIMIT}
    return Promises(taken_over=taken, gone=hosts, longest_gap=gap, limits=limits)


def _gap(run: Run) -> float | None:
    """Without three members nothing is left to write to while one is away."""
    return LONGEST_GAP if sum(each.key == run.member.key for each in run.before.members) >= 3 else None


SCRIPTS: dict[str, Script] = {
    "kill-master": kill_master,
    "lose-volume": lose_volume,
    "partition": partition,
    "pause-master": pause_master,
    "power-off": power_off,
}
