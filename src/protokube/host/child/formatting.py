"""Make an ext4 on a device that was proven blank, without releasing the device in between.

mkfs.ext4 never sees the device: it would have to open it by name, after we released it. It formats a sparse file in
memory, and the result is copied through the one exclusive handle that was used for the proof. The order makes a crash
safe at any time: write a mark with the UUID, then everything but the superblock, then the superblock, then remove the
mark; each step is flushed, read back and compared before the next. So an ext4 with our UUID is always complete, and is
never written again.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import time
from collections.abc import Iterator

from protokube.host.child import ext4, proof, tools
from protokube.host.child.claim import PATIENCE, PAUSE, Busy, Refusal, Wanted, claim
from protokube.host.child.ext4 import BLOCK
from protokube.host.child.proof import Finding
from protokube.host.child.reading import CHUNK, Unreadable, read

# Explicit, since the volume may be mounted next by a machine with an older kernel and older tools.
FEATURES = (
    "none,has_journal,ext_attr,resize_inode,dir_index,filetype,sparse_super,large_file,extent,64bit,flex_bg,"
    "metadata_csum,huge_file,dir_nlink,extra_isize"
)
OPTIONS = ("-q", "-F", "-t", "ext4", "-O", FEATURES, "-b", str(BLOCK), "-I", "256", "-i", "16384", "-m", "0")
# Do not write zeros to a blank device; the kernel clears the inode tables later, and checksums protect the journal.
SPEED = ("-e", "remount-ro", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0")


def format_device(wanted: Wanted, uuid: str, again: bool, parent: int) -> None:
    """Make an ext4 with this UUID. Refusal leaves the device unchanged, or with the mark of an unfinished format."""
    handle = claim(wanted, os.O_RDWR)
    try:
        keep_udev_away(wanted, handle)
        found = proof.look(handle, wanted.size)
        refuse_unless_allowed(found, uuid, again)
        if found.content == proof.EXT4:
            clear_mark(handle)
        else:
            format_proven(handle, wanted.size, uuid, parent)
    except (OSError, Unreadable) as error:
        raise Refusal(f"formatting {wanted.path} failed: {error}") from error
    finally:
        os.close(handle)


def format_proven(handle: int, size: int, uuid: str, parent: int) -> None:
    image = os.memfd_create("image")
    try:
        make(image, size, uuid)
        if os.getppid() != parent:
            raise Refusal("the agent that requested the format is gone")
        write(handle, image, uuid)
    finally:
        os.close(image)


def refuse_unless_allowed(found: Finding, uuid: str, again: bool) -> None:
    """Allow only a blank device, or (with `again`) one whose content proves that this format was started on it."""
    if found.content == proof.BLANK:
        return
    ours = found.content == proof.EXT4 or (found.content == proof.DIRTY and found.unfinished)
    if again and ours and found.uuid == uuid:
        return
    want = f"a blank device, or what a format with UUID {uuid} left" if again else "a blank device"
    raise Refusal(f"not formatted, it is {found.content}: {found.description}; wanted {want}")


def keep_udev_away(wanted: Wanted, handle: int) -> None:
    """Take the lock that makes udev ignore a disk while it is changed."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise Busy(f"{wanted.path} is locked by another program") from error
            time.sleep(PAUSE)


def make(image: int, size: int, uuid: str) -> None:
    """Make the file system in a sparse in-memory file of the size of the device."""
    os.ftruncate(image, size)
    os.set_inheritable(image, True)
    status, output = tools.run("mkfs.ext4", *OPTIONS, *SPEED, "-U", uuid, f"/proc/self/fd/{image}")
    if status:
        raise Refusal(f"mkfs.ext4 ended with {status}: {output}")
    made = ext4.superblock(os.pread(image, BLOCK, 0))
    if made is None or made.uuid != uuid:
        raise Refusal(f"mkfs.ext4 did not make a file system with UUID {uuid}: {output}")


def write(handle: int, image: int, uuid: str) -> None:
    """Copy the image: the superblock comes last, since the rest is meaningless without it."""
    first, mark = os.pread(image, BLOCK, 0), ext4.mark(uuid)
    put(handle, {0: mark.ljust(BLOCK, b"\0")})
    put(handle, dict(pieces(image)))
    put(handle, {0: mark + first[len(mark) :]})
    put(handle, {0: first})


def clear_mark(handle: int) -> None:
    first = read(handle, 0, BLOCK)
    if ext4.marked(first):
        put(handle, {0: bytes(ext4.SUPERBLOCK) + first[ext4.SUPERBLOCK :]})


def pieces(image: int) -> Iterator[tuple[int, bytes]]:
    """The data that mkfs wrote, without the block of the superblock, in pieces of bounded size."""
    position, end = BLOCK, os.fstat(image).st_size
    while position < end:
        try:
            position = max(position, os.lseek(image, position, os.SEEK_DATA))
        except OSError:  # no data after this
            return
        written_to = os.lseek(image, position, os.SEEK_HOLE)
        while position < written_to:
            piece = os.pread(image, min(CHUNK, written_to - position), position)
            yield position, piece
            position += len(piece)


def put(handle: int, data: dict[int, bytes]) -> None:
    """Write, flush, read back with O_DIRECT, compare."""
    for position, piece in data.items():
        with mmap.mmap(-1, len(piece)) as buffer, memoryview(buffer) as view:
            view[:] = piece
            if (written := os.pwritev(handle, [view], position)) != len(piece):
                raise Unreadable(f"short write at byte {position}: {written} of {len(piece)} bytes")
    os.fsync(handle)
    for position, piece in data.items():
        if read(handle, position, len(piece)) != piece:
            raise Unreadable(f"what was written at byte {position} does not read back the same")
