"""Remove a local cloud completely, whether its daemon runs or everything was killed.

The order ensures that nothing is created again: the daemon, slirp4netns, the hosts, mounts, devices, cgroups, the
switch, the folder. Only what provably belongs to this folder is touched, and a folder without the mark of a local
cloud is refused. The mark is removed last, so an interrupted removal can simply be repeated.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

from protokube.errors import Refused, TryLater
from protokube.local.base.paths import MARK, Paths
from protokube.local.disk import loops, mounts
from protokube.local.disk.mounts import MountedAt
from protokube.local.host import cgroups, hosts, leftovers, network

SECONDS = 10.0


def remove(paths: Paths, *, patience: float = SECONDS) -> list[str]:
    """Return what was removed, empty if there was nothing. Raises TryLater if something is left."""
    if paths.root.exists() and not paths.is_ours() and any(paths.root.iterdir()):
        raise Refused(f"{paths.root} is not the state of a local cloud", hint="remove it by hand if you are sure")
    done: list[str] = []
    if (pid := leftovers.daemon(paths)) is not None:
        kill_process(pid)
        done.append(f"stopped the daemon (process {pid})")
    for pid in leftovers.outside_processes(paths):
        kill_process(pid)
        done.append(f"ended the way outside (process {pid})")
    for mount in leftovers.mounted(paths):
        mounts.thaw([mount])  # a process that waits for a frozen file system cannot even be killed
    done += kill_hosts(paths)
    done += _free_disks(paths, patience)
    if cgroups.remove(leftovers.control_groups(paths), patience):
        done.append(f"removed the control groups {cgroups.name(paths.switch)}")
    if leftovers.switch(paths) is not None:
        network.remove_switch(paths.switch)
        done.append(f"removed the network namespace {paths.switch}")
    if paths.root.exists():
        _remove_folder(paths)
        done.append(f"removed {paths.root}")
    left = leftovers.describe(paths)
    if left:
        raise TryLater(f"something of {paths.cluster} is still there", saw="; ".join(left))
    return done


def kill_hosts(paths: Paths) -> list[str]:
    """Kill hosts, including those being started: first the process that starts a host, then its init."""
    done: list[str] = []
    end = time.monotonic() + SECONDS
    while (left := leftovers.processes(paths)) and time.monotonic() < end:
        for process in sorted(left, key=lambda process: (process.first, process.host)):
            if process.first:
                hosts.kill(process.pid)
                done.append(f"killed host {process.host} (process {process.pid})")
            else:
                kill_process(process.pid)
    return done


def _free_disks(paths: Paths, patience: float) -> list[str]:
    done: list[str] = []
    end = time.monotonic() + patience
    while devices := leftovers.devices(paths):
        for mount in leftovers.mounted(paths):
            mounts.take_away(mount)
            done.append(f"unmounted {mount.point} of process {mount.pid}")
        for loop in devices:
            loops.release(loop)
            done.append(f"released {loop.path}")
        if time.monotonic() > end:
            break  # a process holds it open; `remove` reports it
        time.sleep(0.01)
    return list(dict.fromkeys(done))


def _remove_folder(paths: Paths) -> None:
    """Unmount what is mounted inside, then delete. With a mount left nothing is deleted: its files are not ours."""
    for mount in _mounted_inside(paths):
        mounts.take_away(mount)
    if left := _mounted_inside(paths):
        raise TryLater(f"{paths.root} stays", saw=f"something is mounted at {left[0].point}", hint="unmount it")
    mark = paths.root / MARK
    with suppress(OSError):  # a full disk prevents no removal
        paths.removing.touch()
    for each in sorted(set(paths.root.iterdir()) - {mark, paths.removing}):
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()
    paths.removing.unlink(missing_ok=True)
    mark.unlink(missing_ok=True)
    with suppress(OSError):  # somebody has just put something there, such as another `up`; `remove` reports it
        paths.root.rmdir()


def _mounted_inside(paths: Paths) -> list[MountedAt]:
    table = mounts.read_table(os.getpid(), Path("/proc/self/mountinfo").read_text())
    return [mount for mount in table if mount.point.is_relative_to(paths.root)]


def kill_process(pid: int) -> None:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], SECONDS)
        finally:
            os.close(handle)
