"""Disks of the local cloud: sparse image files, shown to a host as loop devices.

The hard part is taking a disk from a host that may not know yet, because it is frozen or cut off: from the moment
`detach` returns, nothing that host has open or in memory can reach the image, whatever it does when it wakes up.
What is bound, cut or mounted is asked of the kernel each time and never remembered.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.local.disk import loops, mounts

PATIENCE = 0.5
"""Seconds for the mounts of a host that has just died to go by themselves, before they are cut."""
BLOCK = 4096
DEEPEST = 10
"""Mounts on top of each other at one place."""


def create(image: Path, size: int) -> None:
    """An empty disk of exactly this many bytes; takes no space until it is written to."""
    if size <= 0 or size % BLOCK:
        raise InvalidRequest(f"a disk cannot have {size} bytes", want=f"a multiple of {BLOCK}")
    file = os.open(image, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.truncate(file, size)
        os.fsync(file)
    finally:
        os.close(file)


def attach(image: Path, size: int) -> tuple[int, int]:
    """The device that shows this disk, bound now if it was not; refuses while anybody may still write to the disk."""
    users = who_uses(image)
    if users:
        raise TryLater(f"{image.stem} is still in use", saw="; ".join(users), want="nobody has it mounted or bound")
    try:
        return (loops.MAJOR, loops.bind(image, size))
    except FileNotFoundError as missing:
        raise Refused(f"the disk of {image.stem} is gone", saw=f"no {image}", want="an image") from missing


def find(image: Path) -> tuple[int, int] | None:
    """The device through which the disk can be reached now, if there is one."""
    return next((loop.number for loop in loops.bound(image) if not loop.is_cut), None)


def who_uses(image: Path) -> Sequence[str]:
    """Everything that stands against giving this disk to somebody, in words: nothing, if it is free.

    A device that was cut is no danger, but a mount of it means that somebody still believes to hold the disk.
    """
    return [*who_mounts(image), *(f"bound to {loop.path}" for loop in loops.bound(image) if not loop.is_cut)]


def who_mounts(image: Path) -> Sequence[str]:
    """Every mount of this disk, in words."""
    numbers = {loop.number for loop in loops.bound(image)}
    return [f"{mount.number[0]}:{mount.number[1]} {mount}" for mount in mounts.who_has(numbers)]


def detach(image: Path, *, patience: float = PATIENCE) -> None:
    """Take the disk from whoever has it.

    With patience, for a host whose processes are gone: its mounts are going, too, and what they still have to write is
    waited for. What is not gone by then is cut. Without patience, for a host that may only be frozen: cut at once.
    """
    if patience and _let_go(image, patience):
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
    """Somebody was killed while he took this disk away: finish it if it is cut, undo it if it is not."""
    for loop in loops.bound(image):
        mounts.thaw(mounts.who_has({loop.number}))
    if find(image) is None:
        detach(image, patience=0)


def _unmount(loop: loops.Loop) -> None:
    """Wherever it is mounted; what was mounted on top of it goes first, so it takes as many turns as there are."""
    for _ in range(DEEPEST):
        found = mounts.who_has({loop.number})
        if not found:
            return
        for mount in found:
            mounts.take_away(mount)


def _let_go(image: Path, patience: float) -> bool:
    """Whether every device of this image was let go by its users within this time."""
    for loop in loops.bound(image):
        loops.release(loop)
    end = time.monotonic() + patience
    while left := loops.bound(image):
        if time.monotonic() > end or mounts.who_has({loop.number for loop in left}):
            return False
        time.sleep(0.002)
    return True


def destroy(image: Path) -> None:
    """Take the disk from whoever has it, and delete it with all that was on it."""
    detach(image, patience=0)
    image.unlink(missing_ok=True)
