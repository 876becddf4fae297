"""System calls that Python 3.11 has no function for: namespaces, mounts, inotify.

An error is an OSError that names the call; mount(2) alone has thirty reasons for "Invalid argument".
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct

# sched.h
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWPID, CLONE_NEWNET = 0x0002_0000, 0x0400_0000, 0x2000_0000, 0x4000_0000
CLONE_NEWCGROUP = 0x0200_0000
# sys/mount.h
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x1, 0x2, 0x4, 0x8
MS_BIND, MS_REC, MS_SLAVE, MS_SHARED = 0x1000, 0x4000, 0x8_0000, 0x10_0000
MNT_DETACH = 2
# sys/inotify.h
IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_ATTRIB = 0x8, 0x40, 0x80, 0x100, 0x200, 0x4

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # calls since 2019 have one number on every architecture
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = -100, 0x8000, 0x1
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = 0x1, 0x4
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Move into new namespaces of these types."""
    _check(_libc.unshare(flags), "unshare")


def setns(handle: int, kind: int) -> None:
    """Move the calling thread into a namespace of this type; for PID namespaces, its future children."""
    _check(_libc.setns(handle, kind), "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    arguments = (_bytes(source), os.fsencode(target), _bytes(kind), ctypes.c_ulong(flags), _bytes(options))
    _check(_libc.mount(*arguments), f"mount {source or kind or ''} at {target}")


def bind(source: str, target: str) -> None:
    """Bind-mount a file or folder, recursively."""
    mount(source, target, None, MS_BIND | MS_REC)


def unmount(target: str, flags: int = 0) -> None:
    _check(_libc.umount2(os.fsencode(target), flags), f"umount {target}")


def copy_mount(source: str) -> int:
    """A detached recursive bind mount of a path, for `attach`."""
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC
    return _syscall(_OPEN_TREE, f"open {source}", ctypes.c_int(_AT_FDCWD), os.fsencode(source), ctypes.c_uint(flags))


def attach(handle: int, target: str) -> None:
    """Attach a detached mount at a path."""
    places = (ctypes.c_int(handle), b"", ctypes.c_int(_AT_FDCWD), os.fsencode(target))
    _syscall(_MOVE_MOUNT, f"mount at {target}", *places, ctypes.c_uint(_MOVE_MOUNT_F_EMPTY_PATH))


def make_read_only(target: str) -> None:
    """Make a mount read-only, recursively; needs Linux 5.12, since mount(2) changes a single mount only."""
    attributes = struct.pack("=4Q", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    place = (ctypes.c_int(_AT_FDCWD), os.fsencode(target), ctypes.c_uint(_AT_RECURSIVE))
    _syscall(_MOUNT_SETATTR, f"read-only {target}", *place, attributes, ctypes.c_size_t(len(attributes)))


def become_root(folder: str) -> None:
    """Make a mount the root of this mount namespace, and detach the old root."""
    os.chdir(folder)
    _check(_libc.pivot_root(b".", b"."), f"pivot_root {folder}")
    # The old root is now mounted on top of the new one.
    _check(_libc.umount2(b".", MNT_DETACH), "umount of the old root")
    os.chdir("/")


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that created it ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Become the reaper of orphaned descendants."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0), "prctl")


def inotify() -> int:
    """A file descriptor that becomes readable on events in watched folders."""
    return _check(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK), "inotify_init1")


def watch(handle: int, folder: str, events: int) -> None:
    """Watch a folder; idempotent."""
    _check(_libc.inotify_add_watch(handle, os.fsencode(folder), ctypes.c_uint32(events)), f"inotify on {folder}")


def _syscall(number: int, call: str, *arguments: object) -> int:
    return _check(_libc.syscall(ctypes.c_long(number), *arguments), call)


def _bytes(text: str | None) -> bytes | None:
    return os.fsencode(text) if text else None


def _check(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result
