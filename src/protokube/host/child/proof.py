"""Classify the content of a device by reading it.

"Blank" allows a format, so it needs proof: every read succeeded, every byte read is zero, libblkid found nothing, and
no other process on this machine uses the device. Any error makes it "unreadable", whatever else was found.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from protokube.host.child import ext4
from protokube.host.child.blkid import NONE, Signatures, signatures
from protokube.host.child.claim import Busy, Wanted, claim
from protokube.host.child.reading import Unreadable, first_not_zero, read

BLANK, EXT4, FOREIGN, DIRTY, BUSY, UNREADABLE = "blank", "ext4", "foreign", "dirty", "busy", "unreadable"
"""The values of protokube.host.Content, which is too heavy to import here."""


class Finding(NamedTuple):
    content: str
    description: str
    uuid: str | None = None
    unfinished: bool = False
    """A format with this UUID was started and not finished."""


def probe(wanted: Wanted) -> Finding:
    """Probe a device that is not in use. Refusal if it is not the one that was found."""
    try:
        handle = claim(wanted, os.O_RDONLY)
    except Busy as busy:
        return Finding(BUSY, str(busy))
    try:
        return look(handle, wanted.size)
    finally:
        os.close(handle)


def look(handle: int, size: int) -> Finding:
    """Classify the content of an open device."""
    try:
        not_zero = first_not_zero(handle, size)
        return judge(seen(handle), head(handle, size), not_zero, size)
    except Unreadable as error:
        return Finding(UNREADABLE, str(error))


def seen(handle: int) -> Signatures:
    return signatures(f"/proc/self/fd/{handle}")  # independent of its current name: the device that was claimed


def head(handle: int, size: int) -> bytes:
    return read(handle, 0, min(size, ext4.BLOCK)) if size else b""


def judge(found: Signatures, head: bytes, not_zero: int | None, size: int) -> Finding:
    """Classify a device that could be read."""
    begun, superblock = ext4.marked(head), ext4.superblock(head)
    torn = superblock is not None and superblock.uuid == begun and not superblock.intact
    if begun and (found == NONE or (torn and is_only_ext4(found))):
        return Finding(DIRTY, f"a format with UUID {begun} that was cut short", begun, unfinished=True)
    if found == NONE:
        if not_zero is None:
            return Finding(BLANK, "blank: all that was read is zero, and there is no signature")
        return Finding(DIRTY, f"no signature, but data: byte {not_zero} is not zero")
    if not is_only_ext4(found):
        return Finding(FOREIGN, str(found))
    if superblock is None or superblock.uuid != found.uuid.lower():
        return Finding(FOREIGN, f"{found}, but its superblock does not say so")
    if found.damaged or not superblock.intact:
        return Finding(FOREIGN, f"{found._replace(damaged=True)}")
    if superblock.size > size:
        return Finding(FOREIGN, f"{found} of {superblock.size} bytes, more than the device has")
    return Finding(EXT4, str(found), superblock.uuid)


def is_only_ext4(found: Signatures) -> bool:
    return found.type == "ext4" and not found.table and not found.several
