"""Detect signatures on a device with libblkid.

The hard part: the `blkid` command exits with 2 both for "nothing found" and for "could not read", and disks with data
were formatted because of that. The library distinguishes the two, and so do we: nothing found is an empty result, an
error is Unreadable. A superblock with a wrong checksum counts as a signature.
"""

from __future__ import annotations

import ctypes
import os
from typing import NamedTuple

from protokube.host.child.reading import Unreadable

LIBRARY = "libblkid.so.1"
LABEL, UUID, TYPE, USAGE, BAD_CHECKSUM = 1 << 1, 1 << 3, 1 << 5, 1 << 7, 1 << 10
TABLE_MAGIC = 1 << 3
LONE_GPT = 1 << 1
"""Detect also a GPT whose first sector was wiped, by its backup at the end of the disk."""
FOUND, NOTHING, SEVERAL = 0, 1, -2
VALUES = ("TYPE", "USAGE", "UUID", "LABEL", "PTTYPE", "SBBADCSUM")


class Signatures(NamedTuple):
    """The signatures found: none, one file system, a partition table, or several at once."""

    several: bool = False
    type: str = ""
    usage: str = ""
    uuid: str = ""
    label: str = ""
    table: str = ""
    damaged: bool = False

    def __str__(self) -> str:
        if self.several:
            return "several signatures at once"
        found = []
        if self.type:
            kind = "file system" if self.usage == "filesystem" else "signature"
            label = f' labelled "{self.label}"' if self.label else ""
            damage = " whose checksum is wrong" if self.damaged else ""
            found.append(f"{article(self.type)} {self.type} {kind}{label}{damage}")
        if self.table:
            found.append(f"{article(self.table)} {self.table} partition table")
        return " and ".join(found) or "no signature"


NONE = Signatures()


def article(word: str) -> str:
    return "an" if word[0] in "aeiouAEIOUxL" else "a"


def signatures(path: str, library: str = LIBRARY) -> Signatures:
    """Probe a device through a separate handle: libblkid cannot use O_DIRECT, so cached pages are dropped first."""
    blkid = load(library)
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        probe = blkid.blkid_new_probe()
        if not probe:
            raise Unreadable("libblkid has no memory for a probe")
        try:
            return ask(blkid, probe, handle)
        finally:
            blkid.blkid_free_probe(probe)
    finally:
        os.close(handle)


def ask(blkid: ctypes.CDLL, probe: int, handle: int) -> Signatures:
    prepared = (
        blkid.blkid_probe_set_device(probe, handle, 0, 0),
        blkid.blkid_probe_enable_superblocks(probe, 1),
        blkid.blkid_probe_set_superblocks_flags(probe, LABEL | UUID | TYPE | USAGE | BAD_CHECKSUM),
        blkid.blkid_probe_enable_partitions(probe, 1),
        blkid.blkid_probe_set_partitions_flags(probe, TABLE_MAGIC | LONE_GPT),
    )
    if any(prepared):
        raise Unreadable(f"libblkid could not look at the device: {os.strerror(ctypes.get_errno())}")
    ctypes.set_errno(0)
    answer = blkid.blkid_do_safeprobe(probe)
    if answer == NOTHING:
        return NONE
    if answer == SEVERAL:
        return Signatures(several=True)
    if answer != FOUND:
        raise Unreadable(f"libblkid could not read the device: {os.strerror(ctypes.get_errno())}")
    kind, usage, uuid, label, table, damaged = (value(blkid, probe, name) for name in VALUES)
    if not kind and not table:
        kind = "unknown"  # something was found; even without a name the device is not empty
    return Signatures(False, kind, usage, uuid, label, table, bool(damaged))


def value(blkid: ctypes.CDLL, probe: int, name: str) -> str:
    data = ctypes.c_char_p()
    if blkid.blkid_probe_lookup_value(probe, name.encode(), ctypes.byref(data), None):
        return ""
    return (data.value or b"").decode(errors="replace")


def load(library: str) -> ctypes.CDLL:
    """Load the library. Raises Unreadable without it: then nothing can be proven."""
    try:
        blkid = ctypes.CDLL(library, use_errno=True)
    except OSError as error:
        raise Unreadable(f"{library} is needed to tell what is on a device, and cannot be loaded: {error}") from error
    pointer = ctypes.c_void_p
    blkid.blkid_new_probe.restype = pointer
    blkid.blkid_free_probe.argtypes = [pointer]
    blkid.blkid_free_probe.restype = None
    blkid.blkid_probe_set_device.argtypes = [pointer, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    for name in ("enable_superblocks", "set_superblocks_flags", "enable_partitions", "set_partitions_flags"):
        getattr(blkid, f"blkid_probe_{name}").argtypes = [pointer, ctypes.c_int]
    blkid.blkid_do_safeprobe.argtypes = [pointer]
    blkid.blkid_probe_lookup_value.argtypes = [
        pointer,
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_char_p),
        ctypes.POINTER(ctypes.c_size_t),
    ]
    return blkid
