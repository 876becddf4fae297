"""Errors of the kernel as sentences for a person: what could not be done, where, and what to do. Pure."""

from __future__ import annotations

import errno
import os

from protokube.errors import ProtokubeError, Refused

SENTENCES = {
    errno.ENOSPC: ("there is no room left for {}", "make room on the disk that it is on"),
    errno.EDQUOT: ("there is no room left for {}", "the quota of its owner is used up"),
    errno.EROFS: ("{} is on a file system that is read-only", "mount it writable; errors of a disk make it so, too"),
    errno.EACCES: ("{} may not be accessed", "nodeup needs root"),
    errno.EPERM: ("{} may not be changed", "nodeup needs root; `lsattr` shows whether a file is immutable"),
    errno.EBUSY: ("{} cannot be replaced: it is in use", "is something mounted there, as in a container?"),
    errno.ENOTDIR: ("{} cannot be there: something above it is not a directory", "move that away"),
    errno.ELOOP: ("{} is reached through links that lead in a circle", "correct the links above it"),
    errno.EEXIST: ("{} cannot be made: something else is there or above it", "see where links in its path lead"),
    errno.EISDIR: ("{} is a directory, which is not replaced", "move it away if nobody needs it"),
    errno.EIO: ("{} cannot be read or written: its disk fails", "`dmesg` says more about the disk"),
}


def explained(error: OSError, about: str) -> Refused:
    """As an error of ours. `about` names what was worked on, for errors that name no file."""
    path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else about
    message, hint = SENTENCES.get(error.errno or 0, ("{} cannot be read or written", ""))
    return Refused(message.format(path), saw=error.strerror or str(error) or type(error).__name__, hint=hint)


def reason(error: ProtokubeError) -> str:
    """One line, for a trace: what happened, what was seen and wanted, and what to do."""
    want = f", want {' '.join(error.want.split())}" if error.want else ""
    hint = f"; {' '.join(error.hint.split())}" if error.hint else ""
    return f"{error.in_one_line()}{want}{hint}"
