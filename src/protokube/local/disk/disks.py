"""Disks of the local cloud: sparse image files, exposed to a host as loop devices.

The hard part is fencing a host that does not know it yet, because it is frozen or partitioned: once `detach` returns,
nothing that host has open or cached can reach the image, whatever it does when it wakes up. What is bound, cut or
mounted is read from the kernel each time and never cached.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.local.disk import loops, mounts

PATIENCE = 0.5
"""Seconds for the mounts of a host that just died to go by themselves, before its devices are cut."""
BLOCK = 4096
DEEPEST = 10
"""Stacked mounts at one mount point, at most."""


def create(image: Path, size: int) -> None:
    """Create an empty disk of exactly this many bytes; sparse, so it takes no space until written to."""
    if size <= 0 or size % BLOCK:
        raise InvalidRequest(f"a disk cannot have {size} bytes", want=f"a multiple of {BLOCK}")
    file = os.open(image, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.truncate(file, size)
        os.fsync(file)
    finally:
        os.close(file)


def attach(image: Path, size: int) -> tuple[int, int]:
    """Bind the disk to a loop device; raises TryLater while a process may still write to it."""
    need_unused(image)
    try:
        return (loops.MAJOR, loops.bind(image, size))
    except FileNotFoundError as missing:
        raise Refused(f"the disk of {image.stem} is gone", saw=f"no {image}", want="an image") from missing


def find(image: Path) -> tuple[int, int] | None:
    """The device that reaches the disk now, if there is one."""
    return next((loop.number for loop in loops.bound(image) if not loop.is_cut), None)


def who_uses(image: Path) -> Sequence[str]:
    """Everything that keeps this disk from being attached, in words; empty if it is free.

    A device that was cut is harmless, but a mount of it means that a process still believes it holds the disk.
    """
    return [*who_mounts(image), *(f"bound to {loop.path}" for loop in loops.bound(image) if not loop.is_cut)]


def need_unused(image: Path) -> None:
    """TryLater while anything keeps this disk from being attached or deleted."""
    if users := who_uses(image):
        raise TryLater(
            f"{image.stem} is still in use", saw="; ".join(users), want="a disk that is neither mounted nor bound"
        )


def who_mounts(image: Path) -> Sequence[str]:
    """Every mount of this disk, in words."""
    numbers = {loop.number for loop in loops.bound(image)}
    return [f"{mount.number[0]}:{mount.number[1]} {mount}" for mount in mounts.who_has(numbers)]


def detach(image: Path, *, patience: float = PATIENCE) -> None:
    """Take the disk from every user of it.

    With patience, for a host whose processes are gone: its mounts go, too, and this waits for what they still write.
    What is left then is cut. Without patience, for a host that may only be frozen: cut at once.
    """
    if patience and _release_in_time(image, patience):
        return
    for loop in loops.bound(image):
        if not loop.is_cut:
            with mounts.at_rest(mounts.who_has({loop.number})):
                loops.cut(loop)
        _unmount(loop)
        loops.release(loop)
    left = who_uses(image)
    if left:
        raise TryLater(f"{image.stem} could not be taken away", saw="; ".join(left))


def recover(image: Path) -> None:
    """Complete or undo a `detach` that was killed: complete it if the device is cut, else thaw the file system."""
    for loop in loops.bound(image):
        mounts.thaw(mounts.who_has({loop.number}))
    if find(image) is None:
        detach(image, patience=0)


def _unmount(loop: loops.Loop) -> None:
    """Unmount it in every namespace; each pass removes the topmost of stacked mounts."""
    for _ in range(DEEPEST):
        found = mounts.who_has({loop.number})
        if not found:
            return
        for mount in found:
            mounts.take_away(mount)


def _release_in_time(image: Path, patience: float) -> bool:
    """Release the devices of this image; return whether all of them were unbound within this time."""
    for loop in loops.bound(image):
        loops.release(loop)
    end = time.monotonic() + patience
    while left := loops.bound(image):
        if time.monotonic() > end or mounts.who_has({loop.number for loop in left}):
            return False
        time.sleep(0.002)
    return True


def destroy(image: Path) -> None:
    """Take the disk from every user of it, and delete it with its data."""
    detach(image, patience=0)
    image.unlink(missing_ok=True)
