"""Stop a local cloud and keep everything of it: hosts end in order, disks are unmounted and detached, the daemon ends.

Works in any state, without the daemon: it is ended first, so that it replaces no host. What belongs to the cloud is
found in the kernel (`leftovers`), so a stop that was interrupted, or a cloud of which a part was killed, ends the same
way. The next daemon declares the former hosts dead and starts new ones, which take the disks.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from protokube.errors import TryLater
from protokube.local.base.paths import Paths
from protokube.local.cloud import cleanup
from protokube.local.disk import disks, mounts
from protokube.local.host import cgroups, leftovers, network

DAEMON_SECONDS = 5.0
HOST_SECONDS = 15.0
"""Longer than init waits for its units and for what they leave behind."""


def stop(paths: Paths, *, patience: float = HOST_SECONDS, tell: Callable[[str], None] = lambda _: None) -> list[str]:
    """Return what was stopped, empty if nothing ran. TryLater if something still runs; a second call goes on.

    `tell` is told what is waited for.
    """
    done: list[str] = []
    if (pid := leftovers.daemon(paths)) is not None:
        tell(f"the daemon (process {pid}) ends")
        _end([pid], DAEMON_SECONDS)
        if leftovers.daemon(paths) == pid:
            cleanup.kill_process(pid)
        done.append(f"the daemon (process {pid})")
    paths.stopped.touch()
    for pid in leftovers.outside_processes(paths):
        cleanup.kill_process(pid)
    for mount in leftovers.mounted(paths):
        mounts.thaw([mount])  # a process that waits for a frozen file system cannot end
    hosts = leftovers.inits(paths)
    tell(f"hosts shut down: {', '.join(sorted(hosts))}")
    _end(list(hosts.values()), patience)
    cleanup.kill_hosts(paths)
    done += [f"host {name}" for name in sorted(hosts)]
    for image in sorted({loop.image for loop in leftovers.devices(paths)}):
        tell(f"disk {image.stem} is detached")
        disks.detach(image)
        done.append(f"disk {image.stem} detached")
    cgroups.remove(leftovers.control_groups(paths))
    if leftovers.switch(paths) is not None:
        network.remove_switch(paths.switch)
        done.append(f"network {paths.switch}")
    if left := leftovers.running(paths):
        raise TryLater(
            f"something of {paths.cluster} still runs",
            saw="; ".join(left),
            hint=f"protokube stop --cluster {paths.cluster}",
        )
    return done


def _end(pids: Sequence[int], seconds: float) -> None:
    """SIGTERM to all of them at once; wait until they ended, or until the time is up."""
    end = time.monotonic() + seconds
    with ExitStack() as stack:
        handles = []
        for pid in pids:
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(pid)
                stack.callback(os.close, handle)
                signal.pidfd_send_signal(handle, signal.SIGTERM)
                handles.append(handle)
        for handle in handles:
            select.select([handle], [], [], max(end - time.monotonic(), 0))
